"""One npz file an episode beside the trace, for arrays that are too large for a line of JSON.

Written in one piece when the episode ends: a kill leaves no half file, and an episode that was
killed is run again on resume.
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
    """Where the arrays of an episode lie.

    >>> episode_path(Path("run/hidden"), 3, 1).name
    'episode-000003-attempt-1.npz'
    """
    return folder / f"episode-{episode:06d}-attempt-{attempt}.npz"


def write_episode(folder: Path, result: EpisodeResult, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays of an episode that has ended, all or nothing."""
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
    """A copy of an array or tensor of any kind and device; None for anything else."""
    try:
        if hasattr(value, "detach"):
            value = value.detach().cpu()
            value = (value.float() if value.is_floating_point() else value).numpy()
        return None if value is None else np.array(value, dtype=dtype)
    except (TypeError, ValueError):
        return None
