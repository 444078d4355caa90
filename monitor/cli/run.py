"""``vlawatch run``: episodes of a policy under the monitor."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from monitor.cli import options
from monitor.cli.output import Exit, emit, emit_json

if TYPE_CHECKING:
    from monitor.pipeline import Monitor
    from monitor.rollout import EpisodeSpec, Observer, RunResult
    from monitor.rollout.preflight.startup import StartReport
    from monitor.rollout.views.panels import Look

__all__ = ["run"]

log = logging.getLogger("vlawatch")


def run(
    env: options.Env = "widowx-put-on",
    env_python: options.EnvPython = None,
    isolate: options.Isolate = False,
    env_deadline_s: options.EnvDeadline = 60.0,
    policy: options.Policy = "openvla-mini",
    scenes: options.Scenes = "0:5",
    monitor: options.MonitorFile = "default",
    calibration: options.CalibrationFile = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the run; by default a new one under runs/."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live/--no-live", help="Live view, where stdout is a terminal.")
    ] = True,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --out: only what is missing.")
    ] = False,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="With --resume: run episodes with errors again.")
    ] = False,
    checkpoint: options.Checkpoint = None,
    unnorm_key: options.UnnormKey = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    url: options.Url = None,
    policy_arg: options.PolicyArgs = None,
    disturbance: Annotated[
        str | None,
        typer.Option("--disturbance", help="Disturb every episode, for example object_pushed."),
    ] = None,
    swap_instruction: Annotated[
        bool, typer.Option("--swap-instruction", help="Name the other object instead.")
    ] = False,
    watch_only: Annotated[
        bool, typer.Option("--watch-only", help="Score and alert, but never step in.")
    ] = False,
    recovery: Annotated[
        bool, typer.Option("--recovery/--no-recovery", help="Retreat while in RECOVER.")
    ] = True,
    max_steps: Annotated[
        int | None,
        typer.Option("--max-steps", min=1, help="Limit of steps an episode."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of whatever draws by chance.")] = 0,
    video: Annotated[
        bool, typer.Option("--video", help="Film every episode into the run's folder.")
    ] = False,
    screenshot: Annotated[
        Path | None,
        typer.Option("--screenshot", help="Keep a picture of the live view as SVG."),
    ] = None,
    probe: Annotated[
        bool,
        typer.Option("--probe/--no-probe", help="Check policy and environment before step 0."),
    ] = True,
    keep_logits: Annotated[
        bool, typer.Option("--keep-logits", help="Keep all logits in the run's folder (large).")
    ] = False,
    keep_hidden: options.KeepHidden = False,
    sink: Annotated[
        list[str] | None,
        typer.Option("--sink", help="Observer of another package (vlawatch.sinks); repeatable."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Run episodes under the monitor.

    Writes the trace and prints a summary. Ctrl-C keeps what is finished; `--resume --out DIR` completes the rest.
    """
    from monitor.cli.names import check_disturbance, check_expert, check_names, check_scenes
    from monitor.cli.session import (
        EnvHost,
        make_monitor,
        one_thread,
        open_env,
        open_policy,
    )
    from monitor.errors import ConfigError
    from monitor.rollout import RunFiles, read_specs, run_episodes, run_header
    from monitor.rollout.recorders.sinks import load_sinks
    from monitor.study.summary import build_summary
    from monitor.trace import check_free, check_writable

    one_thread()
    if resume and out is None:
        msg = "--resume needs --out DIR: the folder of the run to continue"
        raise ConfigError(msg)
    extra: dict[str, Any] = {}
    if disturbance is not None:
        extra["disturbance"] = disturbance
    if swap_instruction:
        extra["swap_instruction"] = True
    specs = read_specs(scenes, seed=seed, options=extra)
    check_names(
        policy,
        env=env if env_python is None else None,
        config=monitor,
        checkpoint=checkpoint,
        further=policy_arg,
        url=url,
    )
    folder = out if out is not None else _new_folder(env, policy)
    (check_writable if resume else check_free)(folder)
    host = EnvHost.chosen(env_python, isolate=isolate, deadline_s=env_deadline_s)
    # Before the environment: a mistyped argument is said at once, a simulator takes its time.
    agent, given = open_policy(
        policy,
        policy_arg,
        checkpoint=checkpoint,
        unnorm_key=unnorm_key,
        device=device,
        dtype=dtype,
        url=url,
    )
    world = open_env(env, host)
    check_scenes(world, specs)
    if policy == "expert":
        check_expert(world)
    if disturbance is not None:
        check_disturbance(world, disturbance)
    watcher = make_monitor(
        world,
        agent,
        config=monitor,
        calibration=calibration,
        policy_name=getattr(agent, "served", None) or policy,
        env_name=env,
        switches={"enforce": not watch_only, "recovery": recovery},
    )
    header = run_header(
        env_name=env,
        env=world,
        policy_name=policy,
        monitor=watcher,
        specs=specs,
        policy_kwargs=given,
        seed=seed,
    )
    if probe and specs:
        header["start"] = _start(world, agent, specs[0], watcher)
    with ExitStack() as stack:
        sinks = load_sinks(sink or (), folder, stack)
        look = _look(f"{env} · {policy}", watcher)
        observers = _observers(stack, look, live=live and not as_json, screenshot=screenshot)
        if video:
            from monitor.rollout.recorders.video import VideoRecorder

            observers = [*observers, VideoRecorder(folder / "videos")]
        if keep_logits:
            from monitor.rollout.recorders.logits import LogitsRecorder

            observers = [*observers, LogitsRecorder(folder)]
        if keep_hidden:
            from monitor.rollout.recorders.hidden import HiddenRecorder

            observers = [*observers, HiddenRecorder(folder)]
        result = run_episodes(
            world,
            agent,
            watcher,
            specs,
            files=RunFiles(
                folder=folder,
                header=header,
                resume=resume,
                retry_errors=retry_errors,
                summarise=build_summary,
            ),
            observers=[*observers, *sinks],
            remake=lambda: open_env(env, host),
            max_steps=max_steps,
        )
    _show(result, len(specs), as_json=as_json)
    if result.interrupted or result.errors or not result.results:
        raise typer.Exit(Exit.EARLY)


def _start(world: Any, agent: Any, spec: EpisodeSpec, watcher: Monitor) -> StartReport:
    """Refuse a policy that does not fit or does not look; say what is merely odd."""
    from monitor.rollout.preflight.startup import check_start

    report = check_start(world, agent, spec, limits=watcher.config.faults.unnorm_limits)
    if report.contract:
        said = " · ".join(f"{name} {text}" for name, text in report.contract.items())
        log.info("start check: %s", said)
    for one in report.findings:
        if not one.refuses:
            log.warning("%s: %s", one.code, one.message)
    if report.skipped:
        log.warning("the check before step 0 is not complete: %s", report.skipped)
    report.require()
    return report


def _observers(
    stack: ExitStack, look: Look, *, live: bool, screenshot: Path | None
) -> Sequence[Observer]:
    """The live view where stdout is a terminal, else plain lines; both for a screenshot."""
    from rich.console import Console

    from monitor.rollout.views.live import LiveView
    from monitor.rollout.views.plain import PlainView

    console = Console()
    drawn = live and console.is_terminal
    views: list[Observer] = []
    if drawn or screenshot is not None:
        views.append(
            stack.enter_context(
                LiveView(look, console=console if drawn else None, screenshot=screenshot)
            )
        )
    if not drawn:
        views.append(PlainView(lambda line: log.info("%s", line)))
    return views


def _look(title: str, watcher: Monitor) -> Look:
    from monitor.rollout.views.panels import Look

    fitted = watcher.calibration
    calibration = "uncalibrated: reference quantiles"
    if fitted is not None:
        calibration = f"calibrated on {fitted.n_success} successful rollouts, α = {fitted.alpha:g}"
    signals = watcher.config.score.signals
    return Look(
        title=title,
        calibration=calibration,
        tau_recover=watcher.tau_recover,
        tau_halt=watcher.tau_halt,
        signals=tuple(name for name, weight in signals.items() if weight > 0),
    )


def _new_folder(env: str, policy: str) -> Path:
    """A folder under runs/ that does not exist yet."""
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{stamp}-{env}-{policy}")
    folder, number = Path("runs") / name, 2
    while folder.exists():
        folder, number = Path("runs") / f"{name}-{number}", number + 1
    return folder


def _show(result: RunResult, wanted: int, *, as_json: bool) -> None:
    """Print the result: the summary in words, or as JSON."""
    summary = dict(result.summary or {})
    if as_json:
        emit_json({"folder": result.folder, "interrupted": result.interrupted, **summary})
        return
    finished = len(result.results)
    solved = sum(one.outcome == "success" for one in result.results)
    halted = sum(one.outcome == "halted" for one in result.results)
    emit(
        f"{finished} of {wanted} episodes: {solved} success at end, {halted} halted, "
        f"{result.errors} errors"
    )
    rate = summary.get("pass_rate")
    if rate and rate.get("value") is not None:
        emit(
            f"pass rate {rate['value']:.0%} ({rate['low']:.0%} to {rate['high']:.0%}, 95 % Wilson) "
            f"of {summary.get('completed')} completed"
        )
        careful = summary["conservative_rate"]
        if careful["total"] > rate["total"]:
            emit(
                f"with errors and halts counted against it {careful['value']:.0%} "
                f"({careful['low']:.0%} to {careful['high']:.0%}) of {careful['total']}"
            )
    elif not finished:
        emit("pass rate: no data")
    if benchmark := summary.get("benchmark_rate"):
        emit(
            f"the benchmark's own verdict at the end: {benchmark['value']:.0%} "
            f"({benchmark['low']:.0%} to {benchmark['high']:.0%})"
        )
    emit(
        f"alerts in {summary.get('alerts')} episodes: {summary.get('false_alarms')} false alarms, "
        f"{summary.get('missed_failures')} failures without one"
    )
    policy, overhead = summary.get("policy_ms"), summary.get("overhead_us")
    if policy and overhead and policy.get("median") is not None:
        emit(
            f"policy {policy['median']:.1f} ms a step (p99 {policy['p99']:.1f}), "
            f"monitor {overhead['median']:.0f} µs (p99 {overhead['p99']:.0f})"
        )
    for one in result.results:
        if one.outcome in ("error", "halted"):
            emit(f"scene {one.scene}: {one.outcome}: {one.message}")
    emit(f"trace: {result.folder}")
