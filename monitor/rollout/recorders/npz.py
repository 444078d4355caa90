"""One npz file per episode next to the trace, for arrays that are too large for a JSON line.

Each is written atomically when the episode ends: a killed process leaves no partial file, and a
killed episode is run again on resume.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.rollout.records import EpisodeResult

__all__ = ["array_of", "episode_path", "write_episode"]


def episode_path(folder: Path, episode: int, attempt: int) -> Path:
    """Return the path of an episode's arrays.

    >>> episode_path(Path("run/hidden"), 3, 1).name
    'episode-000003-attempt-1.npz'
    """
    return folder / f"episode-{episode:06d}-attempt-{attempt}.npz"


def write_episode(folder: Path, result: EpisodeResult, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays of a finished episode, all or nothing."""
    given: dict[str, Any] = dict(arrays)
    folder.mkdir(parents=True, exist_ok=True)
    path = episode_path(folder, result.episode, result.attempt)
    draft = path.with_name(path.name + ".part")
    with draft.open("wb") as file:
        np.savez_compressed(file, **given)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def array_of(value: Any, dtype: Any) -> NDArray[Any] | None:
    """Copy an array or tensor of any kind and device; return None for anything else."""
    try:
        if hasattr(value, "detach"):
            value = value.detach().cpu()
            value = (value.float() if value.is_floating_point() else value).numpy()
        return None if value is None else np.array(value, dtype=dtype)
    except (TypeError, ValueError):
        return None
