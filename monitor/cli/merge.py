"""``vlawatch merge``: several runs of one setup as a single run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli import options
from monitor.cli.output import emit, emit_json

__all__ = ["merge"]


def merge(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, e.g. the parts of a sweep.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the new run.")],
    as_json: options.AsJson = False,
) -> None:
    """Put the episodes of several runs into one.

    Refuses runs that differ in environment, policy, monitor, calibration or seed, and episodes
    that are in two of them.
    """
    from monitor.study.merge import merge_runs

    merged = merge_runs(runs, out)
    summary = merged.summary or {}
    if as_json:
        emit_json({"folder": merged.path, **summary})
        return
    emit(f"{summary.get('episodes')} episodes of {len(runs)} runs: {merged.path}")
