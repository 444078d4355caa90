"""``vlawatch export``: a run for other people's tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli.output import emit
from monitor.errors import ConfigError

__all__ = ["export"]


def export(
    run: Annotated[Path, typer.Argument(help="Folder of the run.")],
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Write steps.parquet and episodes.parquet.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to write to; by default the run's.")
    ] = None,
) -> None:
    """Write a run in another format."""
    if not parquet:
        msg = "say which format: --parquet"
        raise ConfigError(msg)
    from monitor.study.export import export_parquet

    for path in export_parquet(run, out=out):
        emit(str(path))
