"""Which scenes to run, as people write it."""

from __future__ import annotations

import re
from pathlib import Path

from monitor.errors import ConfigError

__all__ = ["parse_scenes"]

MAX_SCENES = 1_000_000


def parse_scenes(text: str) -> list[int]:
    """Read scene indices: a range, a list, both mixed, or a file of them.

    Args:
        text: ``0:20`` (20 excluded), ``0:20:5``, ``3,5,9``, ``7``, or the path of a text file
            with such entries, one or more a line; ``#`` starts a comment there.

    Returns:
        The indices in the order given; doubles are kept.

    Example:
        >>> parse_scenes("0:3,7")
        [0, 1, 2, 7]

    Raises:
        ConfigError: if an entry cannot be read, or nothing is left.
    """
    path = Path(text)
    if not re.fullmatch(r"[\d:,\s]*", text) and path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines()
        text = ",".join(line.partition("#")[0].strip().replace(" ", ",") for line in lines)
    scenes: list[int] = []
    for entry in text.split(","):
        if entry.strip():
            scenes.extend(_entry(entry.strip()))
    if not scenes:
        msg = f"no scenes in {text!r}; give a range such as 0:20, a list such as 3,5,9, or a file"
        raise ConfigError(msg)
    return scenes


def _entry(entry: str) -> range:
    match = re.fullmatch(r"(\d+)(?::(\d+)(?::(\d+))?)?", entry)
    if match is None:
        msg = f"cannot read scenes {entry!r}; give a range such as 0:20, a list 3,5,9, or a file"
        raise ConfigError(msg)
    start = int(match[1])
    stop = start + 1 if match[2] is None else int(match[2])
    step = 1 if match[3] is None else int(match[3])
    if step == 0 or stop <= start or stop - start > MAX_SCENES:
        msg = f"scenes {entry!r} name nothing: the end lies beyond the start, the step is above 0"
        raise ConfigError(msg)
    return range(start, stop, step)
