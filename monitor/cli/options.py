"""Options that several subcommands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Env = Annotated[str, typer.Option("--env", help="Environment; `vlawatch envs` lists them.")]
Policy = Annotated[str, typer.Option("--policy", help="Policy; `vlawatch policies` lists them.")]
Scenes = Annotated[
    str,
    typer.Option(
        "--scenes",
        help="0:20 (20 excluded), 3,5,9, a file of indices, or layouts: FILE.json#0:500.",
    ),
]
MonitorFile = Annotated[
    str, typer.Option("--monitor", help="Monitor configuration: shipped name or YAML file.")
]
CalibrationFile = Annotated[
    Path | None,
    typer.Option("--calibration", help="Calibration file instead of the configuration's."),
]
Checkpoint = Annotated[
    str | None,
    typer.Option("--checkpoint", help="Folder of the policy's checkpoint."),
]
UnnormKey = Annotated[
    str | None,
    typer.Option("--unnorm-key", help="Data set whose statistics scale the actions."),
]
Device = Annotated[
    str | None,
    typer.Option("--device", help="Device of the policy, for example cpu or cuda."),
]
Dtype = Annotated[
    str | None,
    typer.Option("--dtype", help="Number type of the policy, for example float32."),
]
Url = Annotated[
    str | None,
    typer.Option("--url", help="Address of a policy server, for --policy remote."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Result as JSON on stdout.")]
