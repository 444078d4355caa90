"""``vlawatch sweep``: policies × environments × scenes × seeds from a file."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from monitor.cli import options
from monitor.cli.groups import (
    EnvOptions,
    MonitorOptions,
    PolicyOptions,
    ResumeOptions,
    group_of,
    with_groups,
)
from monitor.cli.output import Exit, emit, emit_json, emit_table

if TYPE_CHECKING:
    from monitor.study.sweep import SweepConfig, SweepStatus

__all__ = ["sweep"]

log = logging.getLogger("vlawatch")

LINE_EVERY_S = 30.0
Watch = Callable[["SweepStatus"], None]


@with_groups
def sweep(
    file: Annotated[Path, typer.Argument(help="YAML file: policies, envs, scenes, seeds.")],
    resuming: ResumeOptions,
    out: Annotated[Path, typer.Option("--out", help="Folder of the sweep.")],
    jobs: options.Jobs = 1,
    status: Annotated[
        bool,
        typer.Option("--status", help="Print the progress of the sweep in --out and run nothing."),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run many policies in many environments.

    Every part is an ordinary run folder below --out and can be read while the sweep runs. Ctrl-C
    keeps what is finished; `--resume` runs the rest.
    """
    from monitor.study.sweep import load_sweep, read_status, run_fleet

    config = load_sweep(file)
    if status:
        _show(read_status(config, out), as_json=as_json)
        return
    _check_names(config)
    with _progress() as watch:
        result = run_fleet(
            config,
            out,
            jobs=jobs,
            resume=resuming.resume,
            retry_errors=resuming.retry_errors,
            watch=watch,
        )
    _show(result.status, as_json=as_json)
    if not result.complete:
        raise typer.Exit(Exit.EARLY)


def _check_names(config: SweepConfig) -> None:
    """Refuse what does not exist before the first process starts."""
    for cell in config.cells():
        chosen = cell.options(config)
        group_of(PolicyOptions, chosen).check()
        group_of(EnvOptions, chosen).check()
        group_of(MonitorOptions, chosen).check()


def _show(status: SweepStatus, *, as_json: bool) -> None:
    if as_json:
        emit_json(status.to_json())
        return
    emit_table(
        (
            "policy",
            "environment",
            "seed",
            "episodes",
            "success at end",
            "halted",
            "errors",
            "alerted",
        ),
        [
            (
                cell.policy,
                cell.env,
                cell.seed,
                f"{cell.finished} of {cell.planned}",
                cell.pass_rate.to_text(),
                cell.outcomes.get("halted", 0),
                cell.outcomes.get("error", 0),
                cell.alerted,
            )
            for cell in status.cells
        ],
    )
    for cell in status.cells:
        if cell.problem is not None:
            emit(f"{cell.policy} in {cell.env}, seed {cell.seed}: {cell.problem}")


@contextmanager
def _progress() -> Iterator[Watch]:
    """Show a bar with the time left where stderr is a terminal, else a line now and then."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines().watch
        return
    columns = (
        TextColumn("episodes"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, speed_estimate_period=600) as bar:
        task = bar.add_task("episodes", total=None)

        def watch(status: SweepStatus) -> None:
            bar.update(task, total=status.planned, completed=status.finished)

        yield watch


class _Lines:
    """Logs the progress of a sweep, at most every half minute."""

    def __init__(self) -> None:
        self._began = self._said = time.monotonic()
        self._first: int | None = None

    def watch(self, status: SweepStatus) -> None:
        """Log a line if it is time for one."""
        now = time.monotonic()
        if self._first is None:
            self._first = status.finished
        if now - self._said < LINE_EVERY_S:
            return
        self._said = now
        done, missing = status.finished - self._first, status.planned - status.finished
        left = f", {missing * (now - self._began) / done / 60:.0f} min left" if done else ""
        log.info("%d of %d episodes%s", status.finished, status.planned, left)
