"""``vlawatch export``: a run in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli import options
from monitor.cli.output import emit, emit_json
from monitor.errors import ConfigError

__all__ = ["export"]


def export(
    run: options.RunFolder,
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Write steps.parquet and episodes.parquet.")
    ] = False,
    lerobot: Annotated[
        Path | None, typer.Option("--lerobot", help="New folder for a LeRobot v3.0 dataset.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for --parquet. Default: the run's.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a run in another format."""
    if not parquet and lerobot is None:
        msg = "say which format: --parquet, --lerobot DIR or both"
        raise ConfigError(msg)
    if out is not None and not parquet:
        msg = "--out is the folder of --parquet, which is not given; --lerobot names its own"
        raise ConfigError(msg)
    written: list[Path] = []
    if parquet:
        from monitor.study.export.parquet import export_parquet

        written += export_parquet(run, out=out)
    if lerobot is not None:
        from monitor.study.export.lerobot import export_lerobot

        written.append(export_lerobot(run, lerobot))
    if as_json:
        emit_json({"written": [str(path) for path in written]})
        return
    for path in written:
        emit(str(path))
