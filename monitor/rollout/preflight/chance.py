"""Answers that differ by chance: are their means apart by more than chance makes them?"""

from __future__ import annotations

import numpy as np

from monitor.records import FloatArray

__all__ = ["CERTAIN", "means_apart"]

CERTAIN = 6.0
"""Standard errors between two means that chance does not explain: with 8 answers a side it does so
once in 30 000 comparisons of one number."""


def means_apart(one: FloatArray, other: FloatArray) -> float:
    """How far apart the means of two sets of actions are, in [0, 1]; 0 where it may be chance.

    Welch's statistic decides dimension by dimension; the size given is the difference over itself
    plus the spread within the sets, the largest of the dimensions that are certain.

    Args:
        one: ``(n, D)``, at least 2 rows.
        other: ``(m, D)``, at least 2 rows.

    >>> means_apart(np.array([[0.0], [0.1]]), np.array([[0.0], [0.2]]))
    0.0
    >>> means_apart(np.zeros((2, 1)), np.ones((2, 1)))
    1.0
    """
    apart = np.abs(one.mean(axis=0) - other.mean(axis=0))
    spreads = one.var(axis=0, ddof=1), other.var(axis=0, ddof=1)
    error = np.sqrt(spreads[0] / len(one) + spreads[1] / len(other))
    within = np.sqrt((spreads[0] + spreads[1]) / 2.0)
    certain = apart > CERTAIN * error
    return float((apart[certain] / (apart[certain] + within[certain])).max(initial=0.0))
