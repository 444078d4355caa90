"""``vlawatch doctor``: what is missing on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from monitor.cli import options
from monitor.cli.output import emit, emit_json

__all__ = ["doctor"]


def doctor(
    render: Annotated[
        bool, typer.Option("--render/--no-render", help="Also render an image; takes seconds.")
    ] = True,
    as_json: options.AsJson = False,
) -> None:
    """Check what is missing on this machine.

    Each check with the command that fixes it. Exit code 3 if the main job cannot run.
    """
    from monitor.doctor import examine, exit_code, to_text

    checks = examine(render=render)
    if as_json:
        emit_json([asdict(check) for check in checks])
    else:
        emit(to_text(checks))
    raise typer.Exit(exit_code(checks))
