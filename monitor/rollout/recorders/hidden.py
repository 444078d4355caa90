"""The observer that keeps the policy's features of every step, to train a SAFE probe on them.

``hidden/episode-000003-attempt-1.npz`` next to the trace, see :mod:`monitor.rollout.recorders.npz`.

| array | shape, type | meaning |
| --- | --- | --- |
| step | (T,) int64 | index of the step; joins with ``steps.jsonl`` |
| hidden | (T, F) float32 | ``Step.hidden``; may hold NaN if the policy gave NaN |

Steps without features, or with a different number of them than most of the episode's, are left out.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from monitor.rollout.recorders.npz import array_of, write_episode
from monitor.rollout.records import EpisodeResult, EpisodeStart, StepRecord

__all__ = ["FOLDER", "HiddenRecorder"]

FOLDER: Final = "hidden"


@final
class HiddenRecorder:
    """Writes one file per episode.

    Args:
        folder: folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._kept: list[tuple[int, NDArray[np.float32]]] = []

    def on_start(self, start: EpisodeStart) -> None:
        """Start with no steps."""
        self._kept = []

    def on_step(self, record: StepRecord) -> None:
        """Keep one step if its features are an ``(F,)`` array."""
        hidden = array_of(record.inputs.hidden, np.float32)
        if hidden is not None and hidden.ndim == 1 and hidden.size:
            self._kept.append((record.step, hidden))

    def on_end(self, result: EpisodeResult) -> None:
        """Write the episode if any step has features."""
        if not self._kept:
            return
        size, _ = Counter(len(row) for _, row in self._kept).most_common(1)[0]
        kept = [one for one in self._kept if len(one[1]) == size]
        arrays: dict[str, NDArray[Any]] = {
            "step": np.array([step for step, _ in kept], dtype=np.int64),
            "hidden": np.stack([row for _, row in kept]),
        }
        write_episode(self._folder, result, arrays)
        self._kept = []
