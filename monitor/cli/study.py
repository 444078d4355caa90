"""``vlawatch study``: studies that answer a question by many episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli import options
from monitor.cli.output import Exit, emit, emit_json, show_error

__all__ = ["app", "evaluate"]

app = typer.Typer(
    help="Answer a question about monitors by many episodes.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def evaluate() -> None:
    """Say where the study of a monitor went."""
    show_error("the study of a monitor is now `vlawatch study monitor`, with the same options")
    raise typer.Exit(Exit.USAGE)


@app.command(name="monitor")
def study_monitor(
    out: Annotated[
        Path, typer.Option("--out", help="Folder of the study; one that is there goes on.")
    ],
    env: options.Env = "widowx-put-on",
    policy: options.Policy = "openvla-mini",
    scenes: options.Scenes = "0:200",
    disturbed: Annotated[
        str | None,
        typer.Option("--disturbed", help="Scenes that are disturbed in turn, for example 200:400."),
    ] = None,
    calibrate_on: Annotated[
        str | None,
        typer.Option("--calibrate-on", help="Scenes to fit a calibration on first."),
    ] = None,
    alpha: Annotated[
        float,
        typer.Option("--alpha", min=0.0, max=1.0, help="False alarms allowed on successes."),
    ] = 0.1,
    monitor: options.MonitorFile = "default",
    calibration: options.CalibrationFile = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Arms that run at the same time.")] = 1,
    acting: Annotated[
        bool,
        typer.Option("--acting/--no-acting", help="Also run the scenes with the monitor acting."),
    ] = True,
    max_steps: Annotated[
        int | None, typer.Option("--max-steps", min=1, help="Limit of steps an episode.")
    ] = None,
    keep_hidden: options.KeepHidden = False,
    checkpoint: options.Checkpoint = None,
    unnorm_key: options.UnnormKey = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    seed: Annotated[int, typer.Option("--seed", help="Of whatever draws by chance.")] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Study a policy and its monitor.

    Clean and disturbed scenes, watched only and with the monitor acting: pass rates, false alarms,
    failures alerted and how early, AUROC, success with recovery on and off on the same scenes.
    """
    from monitor.cli.names import check_names
    from monitor.cli.session import find_calibration, one_thread
    from monitor.config import load_config
    from monitor.errors import ConfigError
    from monitor.rollout import parse_scenes
    from monitor.study.evaluate import StudyPlan
    from monitor.study.evaluate import evaluate as run_study
    from monitor.trace import check_writable

    one_thread()
    check_writable(out)
    check_names(policy, env=env, config=monitor, checkpoint=checkpoint)
    if calibrate_on is not None and calibration is not None:
        msg = "give --calibrate-on or --calibration, not both: the one fits what the other reads"
        raise ConfigError(msg)
    config = load_config(monitor)
    fitted = None
    if calibrate_on is None:
        fitted = find_calibration(
            config, source=monitor, given=calibration, policy_name=policy, env_name=env, task=None
        )
    policy_kwargs = {
        "checkpoint": checkpoint,
        "unnorm_key": unnorm_key,
        "device": device,
        "dtype": dtype,
    }
    result = run_study(
        StudyPlan(
            out=out,
            env=env,
            policy=policy,
            clean=parse_scenes(scenes),
            disturbed=() if disturbed is None else parse_scenes(disturbed),
            config=config,
            calibration=fitted,
            calibrate_on=() if calibrate_on is None else parse_scenes(calibrate_on),
            alpha=alpha,
            acting=acting,
            policy_kwargs={key: value for key, value in policy_kwargs.items() if value is not None},
            seed=seed,
            max_steps=max_steps,
            jobs=jobs,
            keep_hidden=keep_hidden,
        )
    )
    if as_json:
        emit_json(result.to_json())
    else:
        emit(result.to_text())
    if not result.complete:
        raise typer.Exit(Exit.EARLY)
