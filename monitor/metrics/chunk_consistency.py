"""CHUNK: how far consecutive action chunks differ where they overlap.

The idea is that of STAC, Agia et al., arXiv 2410.04640; here as a plain distance.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from monitor.records import FloatArray
from monitor.stage import MetricInfo

__all__ = ["INFOS", "chunk_inconsistency"]


def chunk_inconsistency(last: FloatArray, now: FloatArray) -> FloatArray | None:
    """Return the mean distance of two consecutive chunks over the steps of both.

    Args:
        last: ``(..., H, D)`` chunk of the step before, normalised to [0, 1].
        now: ``(..., H', D)`` chunk of this step, which begins one action later.

    Returns:
        Shape ``(...)``; None where no step is in both.

    >>> chunk_inconsistency(np.array([[0.0], [0.2], [0.4]]), np.array([[0.2], [0.5]])).tolist()
    0.04999999999999999
    """
    count = min(last.shape[-2] - 1, now.shape[-2])
    if count < 1:
        return None
    gap = np.abs(last[..., 1 : count + 1, :] - now[..., :count, :])
    return np.asarray(gap.mean(axis=(-2, -1)))


INFOS: Final = (
    MetricInfo(
        id="CHUNK",
        meaning="distance of consecutive action chunks where they overlap",
        warmup=2,
        needs=("chunk",),
        source="STAC, Agia et al., arXiv 2410.04640, as a plain distance",
        typical=(0.02, 0.06, 0.12),
    ),
)
