"""Options that several commands share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Env = Annotated[
    str, typer.Option("--env", help="Environment: a name of `vlawatch envs`, or module:Class.")
]
Policy = Annotated[
    str, typer.Option("--policy", help="Policy: a name of `vlawatch policies`, or module:Class.")
]
Scenes = Annotated[
    str,
    typer.Option(
        "--scenes",
        help="Scenes: 0:20 (20 excluded), 3,5,9, a file of indices, or layouts: FILE.json#0:500.",
    ),
]
MonitorFile = Annotated[
    str,
    typer.Option(
        "--monitor",
        help="Monitor configuration: shipped name or YAML file; see `vlawatch config`.",
    ),
]
OtherMonitor = Annotated[
    str | None,
    typer.Option(
        "--monitor",
        help="Monitor configuration to use instead of the run's own: name or YAML file.",
    ),
]
CalibrationFile = Annotated[
    Path | None,
    typer.Option("--calibration", help="Calibration file to use instead of the configuration's."),
]
Alpha = Annotated[
    float,
    typer.Option(
        "--alpha",
        min=0.0,
        max=1.0,
        help="False-alarm rate to allow on successful episodes, 0 to 1.",
    ),
]
Checkpoint = Annotated[
    str | None, typer.Option("--checkpoint", help="Folder of the policy's checkpoint.")
]
UnnormKey = Annotated[
    str | None,
    typer.Option("--unnorm-key", help="Dataset whose statistics un-normalize the actions."),
]
Device = Annotated[
    str | None, typer.Option("--device", help="Torch device of the policy, e.g. cpu or cuda.")
]
Dtype = Annotated[str | None, typer.Option("--dtype", help="Model dtype, e.g. float32.")]
Url = Annotated[
    str | None,
    typer.Option("--url", help="Policy server for `--policy remote`: ws://HOST:PORT."),
]
PolicyArgs = Annotated[
    list[str] | None,
    typer.Option(
        "--policy-arg", help="Further policy argument, NAME=VALUE with a YAML value; repeatable."
    ),
]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(
        "--api-key-env", help="Environment variable that holds the API key clients must send."
    ),
]
Keys = Annotated[
    list[str] | None,
    typer.Option("--key", help="Message key, NAME=KEY, e.g. image=images/front; repeatable."),
]
MaxMessage = Annotated[
    int,
    typer.Option(
        "--max-message-mib", min=1, help="Message size limit in MiB; a longer one disconnects."
    ),
]
EnvPython = Annotated[
    str | None,
    typer.Option(
        "--env-python",
        help="Python interpreter for the environment, which then runs in its own process; it needs "
        "the simulator and numpy, not this package.",
    ),
]
Isolate = Annotated[
    bool,
    typer.Option(
        "--isolate/--no-isolate",
        help="Run the environment in its own process, with this Python.",
        show_default=False,
    ),
]
EnvDeadline = Annotated[
    float,
    typer.Option(
        "--env-deadline-s",
        help="Step timeout in seconds for an environment in its own process (reset: 5×, "
        "creation: 10×).",
    ),
]
KeepHidden = Annotated[
    bool,
    typer.Option("--keep-hidden", help="Record the policy's features, for `vlawatch safe`."),
]
MaxSteps = Annotated[
    int | None, typer.Option("--max-steps", min=1, help="Maximum number of steps per episode.")
]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Number of parallel processes.")]
Seed = Annotated[int, typer.Option("--seed", help="Random seed.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue what is in --out: run only what is missing.")
]
RetryErrors = Annotated[
    bool,
    typer.Option("--retry-errors", help="With --resume: run episodes that had errors again."),
]
Runs = Annotated[list[Path], typer.Argument(help="Folders of runs.")]
RunFolder = Annotated[Path, typer.Argument(help="Folder of the run.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """Return names and values of a repeatable option.

    >>> pairs(["image=images/front"], "--key")
    {'image': 'images/front'}

    Raises:
        ConfigError: one has no equals sign.
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
