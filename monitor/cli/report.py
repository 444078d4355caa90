"""``vlawatch report``: an HTML page about runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli import options
from monitor.cli.output import emit, emit_json

__all__ = ["report"]


def report(
    runs: options.Runs,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write. Default: report.html in the first run."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a page about runs.

    One self-contained HTML file about one or several runs, and a PNG next to it.
    """
    from monitor.study.report.page import write_report

    written = write_report(runs, out=out)
    if as_json:
        emit_json({"written": [str(path) for path in written]})
        return
    for path in written:
        emit(str(path))
