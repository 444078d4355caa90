"""EV: how far further actions, sampled for the same observation, lie apart.

Execution variability of Valle et al., arXiv 2507.17049.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from monitor.records import FloatArray
from monitor.stage import MetricInfo

__all__ = ["INFOS", "execution_variability"]


def execution_variability(samples: FloatArray) -> FloatArray:
    """Return the population standard deviation of samples, mean over dimensions.

    Args:
        samples: ``(..., K, D)`` actions for one observation, normalised to [0, 1].

    Returns:
        Shape ``(...)``. NaN where it says nothing: with fewer than two samples, or where the
        samples are equal to the last bit, as those of a deterministic policy always are.

    >>> execution_variability(np.array([[0.0], [1.0]])).tolist()
    0.5
    """
    same = (samples == samples[..., :1, :]).all(axis=(-2, -1)) | (samples.shape[-2] < 2)
    return np.where(same, np.nan, samples.std(axis=-2).mean(axis=-1))


INFOS: Final = (
    MetricInfo(
        id="EV",
        meaning="standard deviation of sampled actions, mean over dimensions",
        high=0.5,
        needs=("samples",),
        typical=(0.02, 0.06, 0.12),
    ),
)
