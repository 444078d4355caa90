"""Agreement of a grade with experts, and of experts with each other.

Spearman's rank correlation (SRCC), range-normalised absolute error (R_l2), and the intraclass
correlations of Shrout and Fleiss (1979): ICC(2,1) of one rater, ICC(2,K) of the mean of all K.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import atanh, sqrt, tanh
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from monitor.study.extras import require
from monitor.study.quality.ratings import HIGHEST, LOWEST, Ratings
from monitor.study.statistics.association import spearman

__all__ = ["Estimate", "RaterReliability", "icc", "leave_one_out", "r_l2", "srcc"]

DRAWS: Final = 2000
FEWEST: Final = 5
"""With fewer episodes no interval is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its interval.

    Attributes:
        value: None where it is not defined, as a correlation with a constant.
        low: lower end of the 95 % interval; None where there is none.
        high: upper end.
        episodes: that it is of.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    episodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterReliability:
    """Intraclass correlations.

    Attributes:
        single: ICC(2,1), absolute agreement of one rater, raters taken as a sample.
        average: ICC(2,K), of the mean over the K raters.
    """

    single: Estimate
    average: Estimate


def srcc(given: ArrayLike, experts: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Spearman's rank correlation, each of shape ``(n,)``.

    The interval is Bonett and Wright's (2000): Fisher's z with variance (1 + r²/2) / (n - 3).

    >>> srcc([1, 2, 3], [2, 4, 9]).value
    1.0
    """
    size = int(np.size(given))
    found = spearman(given, experts)
    if found is None:
        return Estimate(value=None, episodes=size)
    rho = found.rho
    if size < FEWEST or abs(rho) > 1 - 1e-12:
        return Estimate(value=rho, episodes=size)
    half = NormalDist().inv_cdf(0.5 + confidence / 2) * sqrt((1 + rho * rho / 2) / (size - 3))
    low, high = tanh(atanh(rho) - half), tanh(atanh(rho) + half)
    return Estimate(value=rho, low=low, high=high, episodes=size)


def r_l2(
    given: ArrayLike, experts: ArrayLike, *, seed: int = 0, confidence: float = 0.95
) -> Estimate:
    """Return the mean of ``|given - experts| / (10 - 1)``, each of shape ``(n,)``; 0 is perfect.

    The absolute error, by the range of the scale; works on action quality often take the square,
    and the range of the data. The interval is a percentile one, episodes drawn again.

    >>> r_l2([5.5, 1.0], [1.0, 1.0]).value
    0.25
    """
    errors = np.abs(np.asarray(given, dtype=np.float64) - np.asarray(experts, dtype=np.float64))
    errors = errors / (HIGHEST - LOWEST)
    if errors.size == 0:
        return Estimate(value=None, episodes=0)
    value = float(errors.mean())
    if errors.size < FEWEST:
        return Estimate(value=value, episodes=errors.size)
    drawn = np.random.default_rng(seed).integers(errors.size, size=(DRAWS, errors.size))
    tail = (1 - confidence) / 2
    low, high = np.quantile(errors[drawn].mean(axis=1), [tail, 1 - tail])
    return Estimate(value=value, low=float(low), high=float(high), episodes=errors.size)


def icc(scores: ArrayLike, confidence: float = 0.95) -> RaterReliability:
    """Two-way random effects, absolute agreement (Shrout and Fleiss 1979, their case 2).

    ICC(2,1) = (BMS - EMS) / (BMS + (K - 1) EMS + K (JMS - EMS) / n) and
    ICC(2,K) = (BMS - EMS) / (BMS + (JMS - EMS) / n), by the mean squares between episodes (BMS),
    between raters (JMS) and of the rest (EMS). Intervals by their F with Satterthwaite's degrees
    of freedom; that of ICC(2,K) by the Spearman-Brown formula.

    Args:
        scores: ``(n, K)`` of n episodes by K raters, all known.
        confidence: confidence level of the intervals.
    """
    table = np.asarray(scores, dtype=np.float64)
    n, k = table.shape
    nothing = Estimate(value=None, episodes=n)
    if n < 2 or k < 2:
        return RaterReliability(single=nothing, average=nothing)
    mean = table.mean()
    bms = k * float(((table.mean(axis=1) - mean) ** 2).sum()) / (n - 1)
    jms = n * float(((table.mean(axis=0) - mean) ** 2).sum()) / (k - 1)
    total = float(((table - mean) ** 2).sum())
    ems = max(0.0, total - (n - 1) * bms - (k - 1) * jms) / ((n - 1) * (k - 1))
    if ems < 1e-12 * total:
        ems = 0.0  # what rounding leaves of a rest that is none
    below = bms + (k - 1) * ems + k * (jms - ems) / n
    if total == 0 or below <= 0:
        return RaterReliability(single=nothing, average=nothing)
    single = (bms - ems) / below
    under = bms + (jms - ems) / n
    average = (bms - ems) / under if under > 0 else None
    ends = _icc_interval(n, k, bms, jms, ems, single, confidence) if n >= FEWEST else None
    if ends is None:
        return RaterReliability(
            single=Estimate(value=single, episodes=n), average=Estimate(value=average, episodes=n)
        )
    low, high = ends
    raised = (None, None) if 1 + (k - 1) * low <= 0 else (_raise(low, k), _raise(high, k))
    return RaterReliability(
        single=Estimate(value=single, low=low, high=high, episodes=n),
        average=Estimate(value=average, low=raised[0], high=raised[1], episodes=n),
    )


def _icc_interval(
    n: int, k: int, bms: float, jms: float, ems: float, value: float, confidence: float
) -> tuple[float, float] | None:
    """Ends of the interval of ICC(2,1); None where the raters differ in nothing but level."""
    if ems == 0:
        return None
    ratio = jms / ems
    spread = n * (1 + (k - 1) * value) - k * value
    dof = (k - 1) * (n - 1) * (k * value * ratio + spread) ** 2
    dof /= (n - 1) * (k * value * ratio) ** 2 + spread**2
    quantile = require("scipy.stats").f.ppf
    above = float(quantile(0.5 + confidence / 2, n - 1, dof))
    below = float(quantile(0.5 + confidence / 2, dof, n - 1))
    rest = k * jms + (k * n - k - n) * ems
    low = n * (bms - above * ems) / (above * rest + n * bms)
    high = n * (below * bms - ems) / (rest + n * below * bms)
    return (low, high) if np.isfinite([low, high]).all() else None


def _raise(single: float, k: int) -> float:
    """Spearman-Brown: reliability of the mean of k raters."""
    return k * single / (1 + (k - 1) * single)


def leave_one_out(ratings: Ratings) -> dict[str, Estimate]:
    """Return the SRCC of each rater with the mean of the others, over what both rated."""
    found = {}
    for rater, scores in ratings.by.items():
        others = Ratings(by={name: of for name, of in ratings.by.items() if name != rater})
        pairs = [(own, others.mean(episode)) for episode, own in sorted(scores.items())]
        known = [(own, mean) for own, mean in pairs if mean is not None]
        found[rater] = srcc([own for own, _ in known], [mean for _, mean in known])
    return found
