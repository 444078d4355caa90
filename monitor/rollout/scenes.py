"""Parse which scenes to run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envs.layout import LayoutFile
from monitor.errors import ConfigError
from monitor.rollout.records import EpisodeSpec

__all__ = ["parse_scenes", "read_layouts", "read_specs"]

MAX_SCENES = 1_000_000
_LAYOUTS = re.compile(r"(.+\.json)(?:#(.+))?")


def read_specs(
    text: str, *, seed: int | None = None, options: Mapping[str, Any] | None = None
) -> list[EpisodeSpec]:
    """Read the episodes to run: scenes of the environment or of a layout file.

    Args:
        text: scenes as for :func:`parse_scenes` or :func:`read_layouts`.
        seed: seed of every episode.
        options: further reset options of every episode.

    Raises:
        ConfigError: if the text or the file cannot be read.
    """
    given = dict(options or {})
    if _LAYOUTS.fullmatch(text) is None:
        return [EpisodeSpec(scene=scene, seed=seed, options=given) for scene in parse_scenes(text)]
    file, scenes = read_layouts(text)
    return [
        EpisodeSpec(scene=scene, seed=seed, options={"layout": file[scene].to_json(), **given})
        for scene in scenes
    ]


def read_layouts(text: str) -> tuple[LayoutFile, list[int]]:
    """Read a layout file and the selected scenes.

    Args:
        text: ``FILE.json`` for all scenes, or ``FILE.json#0:500`` with a selection as for
            :func:`parse_scenes` after the ``#``.

    Raises:
        ConfigError: if the text or the file cannot be read, or the file has no such scene.
    """
    match = _LAYOUTS.fullmatch(text)
    if match is None:
        msg = f"cannot read scenes {text!r}; give a layout file: FILE.json or FILE.json#0:500"
        raise ConfigError(msg)
    file = LayoutFile(match[1])
    scenes = list(range(len(file))) if match[2] is None else parse_scenes(match[2])
    beyond = [scene for scene in scenes if scene >= len(file)]
    if beyond:
        msg = f"scene {beyond[0]} is not in {file.path}, which holds 0 to {len(file) - 1}"
        raise ConfigError(msg)
    return file, scenes


def parse_scenes(text: str) -> list[int]:
    """Read scene indices: a range, a list, both mixed, or a file of them.

    Args:
        text: ``0:20`` (20 excluded), ``0:20:5``, ``3,5,9``, ``7``, or the path of a text file
            with such entries, one or more per line, where ``#`` starts a comment.

    Returns:
        The indices in the order given; duplicates are kept.

    Example:
        >>> parse_scenes("0:3,7")
        [0, 1, 2, 7]

    Raises:
        ConfigError: if an entry cannot be read, or there are no scenes.
    """
    if _LAYOUTS.fullmatch(text) is not None:
        msg = f"{text!r} is a layout file, which this command does not run; give scene indices"
        raise ConfigError(msg)
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
        msg = f"scenes {entry!r} are empty: the end must be above the start and the step above 0"
        raise ConfigError(msg)
    return range(start, stop, step)
