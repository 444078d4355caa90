"""Sets of actions: samples of one step, and action chunks."""

from __future__ import annotations

from typing import Any

import numpy as np

from monitor.reading.arrays import to_array
from monitor.records import FloatArray

__all__ = ["as_actions", "normalise"]


def as_actions(value: Any, dim: int, *lead: int) -> FloatArray | None:
    """Return actions ``(*lead, K, dim)`` with K >= 1, perhaps not finite; None for another shape.

    >>> as_actions([[0, 1], [2, 3]], 2).tolist(), as_actions([0, 1], 2)
    ([[0.0, 1.0], [2.0, 3.0]], None)
    """
    array = to_array(value)
    if array is None or array.ndim != len(lead) + 2:
        return None
    if array.shape[:-2] != lead or array.shape[-1] != dim or array.shape[-2] == 0:
        return None
    # In one order, as the last bit of a mean depends on it.
    return array.astype(np.float64, order="C")


def normalise(actions: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return actions ``(..., D)`` clipped to their space and scaled to [0, 1].

    >>> normalise(np.array([0.0, 9.0]), np.array([-1.0, -1.0]), np.array([1.0, 1.0])).tolist()
    [0.5, 1.0]
    """
    span = np.where(high > low, high - low, 1.0)
    scaled: FloatArray = (np.minimum(np.maximum(actions, low), high) - low) / span
    return scaled
