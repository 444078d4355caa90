"""Split conformal thresholds: a promise about false alarms that holds at any sample size.

With n exchangeable scores the k-th smallest, k = ceil((n + 1)(1 - alpha)), is exceeded by a fresh
one with probability at most alpha. A plain quantile is not: at n = 20 and alpha = 0.05 it lets
9 % through.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, inf, nextafter

import numpy as np
from numpy.typing import ArrayLike

from monitor.errors import CalibrationError
from monitor.records import FloatArray

__all__ = ["conformal_rank", "conformal_threshold", "episodes_needed", "functional_band"]


def episodes_needed(alpha: float) -> int:
    """Return the fewest scores for which a finite threshold exists.

    >>> episodes_needed(0.1), episodes_needed(0.05)
    (9, 19)
    """
    _check_alpha(alpha)
    return ceil(1 / _exact(alpha)) - 1


def conformal_rank(n: int, alpha: float) -> int:
    """Rank, from 1, of the score that is the threshold.

    >>> conformal_rank(20, 0.05)
    20

    Raises:
        CalibrationError: ``n`` scores cannot keep the promise of ``alpha``; says how many more.
    """
    needed = episodes_needed(alpha)
    if n < needed:
        msg = (
            f"{n} successful episodes are too few for alpha {alpha:g}: {needed} are needed, "
            f"{needed - n} more; record more, or allow a larger alpha (with {n}: "
            f"{1 / (n + 1):.3f} or more)"
        )
        raise CalibrationError(msg)
    # In fractions: (19 + 1)(1 - 0.05) is 19, not 19.000000000000004.
    return ceil((n + 1) * (1 - _exact(alpha)))


def conformal_threshold(scores: ArrayLike, alpha: float) -> float:
    """Return the smallest threshold for alarms of the kind ``score >= threshold``.

    It lies one float above the score of that rank, because the promise is about scores that
    exceed it, and a controller alarms on equality.

    Args:
        scores: ``(n,)`` one a successful episode.
        alpha: promised rate of false alarms.
    """
    ordered = np.sort(_finite(scores))
    return nextafter(float(ordered[conformal_rank(ordered.size, alpha) - 1]), inf)


def functional_band(curves: ArrayLike, alpha: float) -> FloatArray:
    """Upper bound over time that a fresh curve leaves anywhere with probability at most alpha.

    Mean and spread of the first half give the band its shape, the second half its width
    (Diquigiovanni et al. 2022, one-sided). The lower bound is ``-functional_band(-curves, alpha)``.

    Args:
        curves: ``(n, T)`` one row an episode.
        alpha: promised rate.

    Returns:
        ``(T,)``; alarm where a curve lies above.
    """
    values = _finite(curves)
    if values.ndim != 2:
        msg = f"curves have shape {values.shape}, expected (episodes, steps)"
        raise CalibrationError(msg)
    half = values.shape[0] // 2
    rank = conformal_rank(values.shape[0] - half, alpha)
    shape, held_out = values[:half], values[half:]
    if half == 0:
        shape = np.zeros((1, values.shape[1]))
    centre = shape.mean(axis=0)
    spread = np.abs(shape - centre).max(axis=0)
    spread = np.maximum(spread, max(float(spread.max()) * 1e-3, 1e-12))
    width = np.sort(((held_out - centre) / spread).max(axis=1))[rank - 1]
    band: FloatArray = centre + width * spread
    return band


def _finite(values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        msg = "scores hold values that are not finite; leave episodes without a score out"
        raise CalibrationError(msg)
    return array


def _exact(alpha: float) -> Fraction:
    """0.05 as people mean it, 1/20, not as floats hold it."""
    return Fraction(repr(float(alpha)))


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        msg = f"alpha {alpha!r} must lie between 0 and 1, exclusive; 0.1 allows 10 % false alarms"
        raise CalibrationError(msg)
