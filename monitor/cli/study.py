"""``vlawatch study``: studies that answer a question by many episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli import options
from monitor.cli.groups import MonitorOptions, PolicyOptions, with_groups
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
@with_groups
def study_monitor(
    policy: PolicyOptions,
    monitor: MonitorOptions,
    out: Annotated[
        Path, typer.Option("--out", help="Folder of the study; an unfinished one is continued.")
    ],
    env: options.Env = "widowx-put-on",
    scenes: options.Scenes = "0:200",
    disturbed: Annotated[
        str | None,
        typer.Option("--disturbed", help="Scenes to run with disturbances in turn, e.g. 200:400."),
    ] = None,
    calibrate_on: Annotated[
        str | None,
        typer.Option("--calibrate-on", help="Scenes to fit a calibration on first."),
    ] = None,
    alpha: options.Alpha = 0.1,
    jobs: options.Jobs = 1,
    acting: Annotated[
        bool,
        typer.Option("--acting/--no-acting", help="Also run the scenes with the monitor acting."),
    ] = True,
    max_steps: options.MaxSteps = None,
    keep_hidden: options.KeepHidden = False,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Study a policy and its monitor.

    Clean and disturbed scenes, watched only and with the monitor acting: pass rates, false alarms,
    failures alerted and how early, AUROC, success with recovery on and off on the same scenes.
    """
    from monitor.cli.names import check_env_name
    from monitor.cli.session import find_calibration, one_thread
    from monitor.config import load_config
    from monitor.errors import ConfigError
    from monitor.rollout import parse_scenes
    from monitor.study.monitor_study import StudyConfig, run_monitor_study
    from monitor.trace import check_writable

    one_thread()
    check_writable(out)
    check_env_name(env)
    policy.check()
    config = load_config(monitor.monitor)
    fitted = None
    if calibrate_on is None:
        fitted = find_calibration(config, monitor, policy_name=policy.policy, env_name=env)
    elif monitor.calibration is not None:
        msg = "give --calibrate-on or --calibration, not both: the one fits what the other reads"
        raise ConfigError(msg)
    result = run_monitor_study(
        StudyConfig(
            out=out,
            env=env,
            policy=policy.policy,
            clean=parse_scenes(scenes),
            disturbed=() if disturbed is None else parse_scenes(disturbed),
            config=config,
            calibration=fitted,
            calibrate_on=() if calibrate_on is None else parse_scenes(calibrate_on),
            alpha=alpha,
            acting=acting,
            policy_kwargs=policy.arguments,
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
