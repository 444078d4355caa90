"""``vlawatch report``: a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli import options
from monitor.cli.output import emit, emit_json

__all__ = ["report"]


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write; by default report.html in the first run."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a page about runs.

    One self-contained HTML file about one or several runs, and a PNG beside it.
    """
    from monitor.study.report import write_report

    written = write_report(runs, out=out)
    if as_json:
        emit_json({"written": [str(path) for path in written]})
        return
    for path in written:
        emit(str(path))
