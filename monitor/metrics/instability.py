"""Instability of actions and of the tool's path over a window (spec 2 to 4).

Valle et al., arXiv 2507.17049: first, second and third differences, divided by 1, 2 and 4 so that
each stays in [0, 1] for inputs in [0, 1]. The formulas here are the definition; the monitor itself
accumulates the same differences in :mod:`monitor.core.measure`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from monitor.records import FloatArray

DIVISORS = (1.0, 2.0, 4.0)
"""Valle et al. give no reason; 2^(k-1) is the largest k-th difference of values in [0, 1]."""


class Instability(NamedTuple):
    """Per dimension, each ``(D,)``."""

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


def instability(window: FloatArray) -> Instability:
    """Return PI, VI and AI of a full window of values, ``(W, D)``.

    All three average the W - 3 newest differences of their order.

    >>> [x.tolist() for x in instability(np.array([[0.0], [1.0]] * 4))]
    [[1.0], [1.0], [1.0]]
    """
    count = len(window) - 3
    parts = []
    step = window
    for divisor in DIVISORS:
        step = step[1:] - step[:-1]
        parts.append(np.abs(step[-count:]).mean(axis=0) / divisor)
    return Instability(*parts)


def jerk_weights(window: int) -> FloatArray:
    """Return ``(window,)`` weights whose sum with the positions is TI's third derivative.

    Three successive central differences (one-sided at the ends) read at the third element from
    the end, so the value belongs to step t - 2.
    """
    grid: FloatArray = np.eye(window)
    for _ in range(3):
        grid = np.asarray(np.gradient(grid, axis=0))
    weights: FloatArray = grid[-3].copy()
    return weights
