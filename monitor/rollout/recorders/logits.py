"""The observer that keeps the policy's logits of every step, for analysis after the run.

``logits/episode-000003-attempt-1.npz`` next to the trace, see :mod:`monitor.rollout.recorders.npz`.

| array | shape, type | meaning |
| --- | --- | --- |
| step | (T,) int64 | index of the step; joins with ``steps.jsonl`` |
| token_logits | (T, N, V) float32 | raw logits |
| token_ids | (T, N) int64 | chosen ids; -1 if the policy did not report them |
| action_token_range | (2,) int64 | half-open range of the action ids; (0, V) if V is the bins |

Steps without logits, or with a different shape than most of the episode's, are left out.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from monitor.rollout.recorders.npz import array_of, write_episode
from monitor.rollout.records import EpisodeResult, EpisodeStart, StepRecord

__all__ = ["FOLDER", "LogitsRecorder"]

FOLDER: Final = "logits"


@final
class LogitsRecorder:
    """Writes one file per episode.

    Args:
        folder: folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._kept: list[tuple[int, NDArray[np.float32], Any]] = []
        self._range: tuple[int, int] | None = None

    def on_start(self, start: EpisodeStart) -> None:
        """Start with no steps."""
        self._kept, self._range = [], None

    def on_step(self, record: StepRecord) -> None:
        """Keep one step if its logits are an ``(N, V)`` array; the trace has a fault otherwise."""
        logits = array_of(record.inputs.token_logits, np.float32)
        if logits is not None and logits.ndim == 2:
            self._kept.append((record.step, logits, array_of(record.inputs.token_ids, np.int64)))
            self._range = record.inputs.action_token_range or self._range

    def on_end(self, result: EpisodeResult) -> None:
        """Write the episode if any step has logits."""
        if not self._kept:
            return
        shape, _ = Counter(logits.shape for _, logits, _ in self._kept).most_common(1)[0]
        kept = [one for one in self._kept if one[1].shape == shape]
        unknown = np.full(shape[0], -1, dtype=np.int64)
        ids = [unknown if row is None or row.shape != unknown.shape else row for *_, row in kept]
        arrays: dict[str, NDArray[Any]] = {
            "step": np.array([step for step, *_ in kept], dtype=np.int64),
            "token_logits": np.stack([logits for _, logits, _ in kept]),
            "token_ids": np.stack(ids),
            "action_token_range": np.array(self._range or (0, shape[1]), dtype=np.int64),
        }
        write_episode(self._folder, result, arrays)
        self._kept = []
