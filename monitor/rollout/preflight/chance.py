"""Test whether two sets of random answers differ in their means by more than chance."""

from __future__ import annotations

import numpy as np

from monitor.records import FloatArray

__all__ = ["CERTAIN", "means_apart"]

CERTAIN = 6.0
"""Distance of two means in standard errors that counts as a difference: with 8 answers per side,
chance exceeds it once in 30 000 comparisons of one number."""


def means_apart(one: FloatArray, other: FloatArray) -> float:
    """Return the distance of the means of two sets of actions in [0, 1]; 0 if it may be chance.

    Welch's statistic decides per dimension; the distance is the difference divided by itself plus
    the spread within the sets, and the largest over the significant dimensions is returned.

    Args:
        one: first set, ``(n, D)``, at least 2 rows.
        other: second set, ``(m, D)``, at least 2 rows.

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
