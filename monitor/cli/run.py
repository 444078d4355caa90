"""``vlawatch run``: episodes of a policy under the monitor."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from monitor.cli import options
from monitor.cli.groups import (
    EnvOptions,
    MonitorOptions,
    PolicyOptions,
    ResumeOptions,
    with_groups,
)
from monitor.cli.output import Exit

if TYPE_CHECKING:
    from monitor.rollout import EpisodeSpec

__all__ = ["run"]


def _read_file(context: typer.Context, file: Path | None) -> Path | None:
    """Let a file give the options that the command line does not."""
    if file is not None:
        from monitor.study.sweep import load_sweep

        context.default_map = load_sweep(file).run_options()
    return file


RunFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE.yaml",
        help="Options as a YAML file, with the keys of `vlawatch sweep`; options on the command "
        "line override the file's.",
        is_eager=True,
        callback=_read_file,
    ),
]


@dataclass(frozen=True, kw_only=True)
class EpisodeOptions:
    """Episodes to run."""

    scenes: options.Scenes = "0:5"
    seed: options.Seed = 0
    max_steps: options.MaxSteps = None
    disturbance: Annotated[
        str | None,
        typer.Option("--disturbance", help="Disturbance of every episode, e.g. object_pushed."),
    ] = None
    swap_instruction: Annotated[
        bool,
        typer.Option("--swap-instruction", help="Name the other object in the instruction."),
    ] = False

    def specs(self) -> list[EpisodeSpec]:
        """Return the episodes.

        Raises:
            ConfigError: the scenes cannot be read.
        """
        from monitor.rollout import read_specs

        extra: dict[str, Any] = {}
        if self.disturbance is not None:
            extra["disturbance"] = self.disturbance
        if self.swap_instruction:
            extra["swap_instruction"] = True
        return read_specs(self.scenes, seed=self.seed, options=extra)

    def check(self, env: Any, specs: list[EpisodeSpec]) -> None:
        """Refuse scenes and disturbances that the environment does not have.

        Raises:
            ConfigError: it does not have one of them.
        """
        from monitor.cli.names import check_disturbance, check_scenes

        check_scenes(env, specs)
        if self.disturbance is not None:
            check_disturbance(env, self.disturbance)


@dataclass(frozen=True, kw_only=True)
class ActOptions:
    """What the monitor may do."""

    watch_only: Annotated[
        bool, typer.Option("--watch-only", help="Score and alert, but never intervene.")
    ] = False
    recovery: Annotated[
        bool, typer.Option("--recovery/--no-recovery", help="Retreat while in RECOVER.")
    ] = True

    @property
    def switches(self) -> dict[str, bool]:
        """Switches of :func:`monitor.cli.session.with_switches`."""
        return {"enforce": not self.watch_only, "recovery": self.recovery}


@dataclass(frozen=True, kw_only=True)
class ViewOptions:
    """What is shown and recorded in addition to the trace."""

    live: Annotated[
        bool, typer.Option("--live/--no-live", help="Live view, if stdout is a terminal.")
    ] = True
    screenshot: Annotated[
        Path | None, typer.Option("--screenshot", help="SVG file for the last live view.")
    ] = None
    video: Annotated[
        bool, typer.Option("--video", help="Record a video of every episode in the run's folder.")
    ] = False
    keep_logits: Annotated[
        bool, typer.Option("--keep-logits", help="Record all logits in the run's folder (large).")
    ] = False
    keep_hidden: options.KeepHidden = False
    sink: Annotated[
        list[str] | None,
        typer.Option(
            "--sink",
            help="Observer: video, logits, hidden, an entry point, or module:Class; repeatable.",
        ),
    ] = None


@with_groups
def run(
    environment: EnvOptions,
    policy: PolicyOptions,
    episodes: EpisodeOptions,
    monitor: MonitorOptions,
    acting: ActOptions,
    resuming: ResumeOptions,
    views: ViewOptions,
    file: RunFile = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the run. Default: a new folder under runs/."),
    ] = None,
    probe: Annotated[
        bool,
        typer.Option("--probe/--no-probe", help="Check policy and environment before step 0."),
    ] = True,
    as_json: options.AsJson = False,
) -> None:
    """Run episodes under the monitor.

    Writes the trace and prints a summary. Ctrl-C keeps what is finished; `--resume --out DIR`
    runs the rest.
    """
    del file  # its callback has read it
    from monitor.cli.run_summary import show_summary
    from monitor.cli.run_views import observers
    from monitor.cli.session import make_monitor, one_thread, start_check
    from monitor.rollout import RunFiles, run_episodes, run_header
    from monitor.study.summary import build_summary

    one_thread()
    specs = episodes.specs()
    for group in (environment, policy, monitor):
        group.check()
    folder = _folder(out, resuming.resume, f"{environment.env}-{policy.policy}")
    # Before the environment: a mistyped argument is reported at once, a simulator takes its time.
    agent = policy.load()
    env = environment.open()
    episodes.check(env, specs)
    policy.check_env(env)
    watcher = make_monitor(
        env, agent, names=(policy.policy, environment.env), chosen=monitor, **acting.switches
    )
    header = run_header(
        env_name=environment.env,
        env=env,
        policy_name=policy.policy,
        monitor=watcher,
        specs=specs,
        policy_kwargs=policy.arguments,
        seed=episodes.seed,
    )
    if probe and specs:
        header["start"] = start_check(env, agent, specs[0], watcher)
    with ExitStack() as stack:
        title = f"{environment.env} · {policy.policy}"
        result = run_episodes(
            env,
            agent,
            watcher,
            specs,
            files=RunFiles(
                folder=folder,
                header=header,
                resume=resuming.resume,
                retry_errors=resuming.retry_errors,
                summarise=build_summary,
            ),
            observers=observers(stack, views, folder, watcher, title=title, plain=as_json),
            remake=environment.open,
            max_steps=episodes.max_steps,
        )
    show_summary(result, len(specs), as_json=as_json)
    if result.interrupted or result.errors or not result.results:
        raise typer.Exit(Exit.EARLY)


def _folder(out: Path | None, resume: bool, name: str) -> Path:
    """Return the folder of the run, which can be written; a new one under runs/ by default."""
    from monitor.errors import ConfigError
    from monitor.trace import check_free, check_writable

    if out is not None:
        (check_writable if resume else check_free)(out)
        return out
    if resume:
        msg = "--resume needs --out DIR: the folder of the run to continue"
        raise ConfigError(msg)
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{stamp}-{name}")
    folder, number = Path("runs") / stem, 2
    while folder.exists():
        folder, number = Path("runs") / f"{stem}-{number}", number + 1
    check_free(folder)
    return folder
