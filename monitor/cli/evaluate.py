"""``vlawatch evaluate``: the study of a policy and its monitor, by one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli import options

__all__ = ["evaluate"]


def evaluate(
    out: Annotated[Path, typer.Option("--out", help="Folder of the evaluation's runs.")],
    env: options.Env = "widowx-put-on",
    policy: options.Policy = "openvla-mini",
    scenes: options.Scenes = "0:200",
    disturbed: Annotated[
        str, typer.Option("--disturbed", help="Scenes that are disturbed, like --scenes.")
    ] = "200:400",
    as_json: options.AsJson = False,
) -> None:
    """Study a policy and its monitor.

    Clean and disturbed scenes, recovery on and off; prints what the monitor is worth.
    """
    raise NotImplementedError
