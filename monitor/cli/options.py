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
PolicyArgs = Annotated[
    list[str] | None,
    typer.Option("--policy-arg", help="Further argument of the policy, NAME=VALUE; repeatable."),
]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option("--api-key-env", help="Environment variable with the key that clients must send."),
]
Keys = Annotated[
    list[str] | None,
    typer.Option("--key", help="Key of a message, NAME=KEY, e.g. image=images/front; repeatable."),
]
MaxMessage = Annotated[
    int,
    typer.Option("--max-message-mib", min=1, help="Longer messages close the connection."),
]
EnvPython = Annotated[
    str | None,
    typer.Option(
        "--env-python",
        help="Python that holds the environment, in a process of its own; it needs the simulator "
        "and numpy, not this package.",
    ),
]
Isolate = Annotated[
    bool,
    typer.Option("--isolate", help="Environment in a process of its own, of this Python."),
]
EnvDeadline = Annotated[
    float,
    typer.Option(
        "--env-deadline-s",
        help="Longest step of an environment in a process of its own; 5 times as much for a "
        "reset, 10 times for making it.",
    ),
]
KeepHidden = Annotated[
    bool,
    typer.Option("--keep-hidden", help="Keep the policy's features, for `vlawatch safe`."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Result as JSON on stdout.")]


def pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """Names and values of a repeatable option.

    >>> pairs(["image=images/front"], "--key")
    {'image': 'images/front'}

    Raises:
        ConfigError: if one has no equals sign.
    """
    from monitor.errors import ConfigError

    found = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not equals or not name:
            msg = f"{option} {one!r}: expected NAME=VALUE"
            raise ConfigError(msg)
        found[name] = value
    return found
