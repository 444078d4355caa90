"""Association of a metric with quality and outcome, as the uncertainty study reports it.

Valle et al. 2025: Spearman's rho against ordinal quality, Mann-Whitney U between failed and
solved rollouts, Vargha and Delaney's A12 as its size. The tests are scipy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from monitor.study.extras import require
from monitor.study.statistics.detection import auroc

__all__ = ["Association", "GroupDifference", "difference", "holm", "spearman"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """Spearman's rank correlation.

    Attributes:
        rho: correlation in [-1, 1].
        p_value: two-sided.
        size: "none", "small", "medium" or "large", by the bands 0.10, 0.29 and 0.49.
    """

    rho: float
    p_value: float
    size: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDifference:
    """Failed against solved rollouts.

    Attributes:
        a12: probability that a failed one has the larger value, ties half.
        p_value: p-value of the two-sided Mann-Whitney U test.
        size: "negligible", "small", "medium" or "large", by 2|A12 - 0.5| at 0.147, 0.33, 0.474.
    """

    a12: float
    p_value: float
    size: str


def spearman(values: ArrayLike, quality: ArrayLike) -> Association | None:
    """Rank correlation; None where one of the two is constant or fewer than 3 are given."""
    x, y = np.asarray(values, dtype=np.float64), np.asarray(quality, dtype=np.float64)
    if x.size < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    found = require("scipy.stats").spearmanr(x, y)
    rho = float(found.statistic)
    size = _band(abs(rho), (0.10, 0.29, 0.49), ("none", "small", "medium", "large"))
    return Association(rho=rho, p_value=float(found.pvalue), size=size)


def difference(solved: ArrayLike, failed: ArrayLike) -> GroupDifference | None:
    """Compare the values of failed and solved rollouts; None where there are none of a kind."""
    a12 = auroc(solved, failed)
    if a12 is None:
        return None
    p_value = float(
        require("scipy.stats").mannwhitneyu(failed, solved, alternative="two-sided").pvalue
    )
    names = ("negligible", "small", "medium", "large")
    return GroupDifference(
        a12=a12, p_value=p_value, size=_band(2 * abs(a12 - 0.5), (0.147, 0.33, 0.474), names)
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979), in the order given.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected


def _band(value: float, limits: Sequence[float], names: Sequence[str]) -> str:
    return names[sum(value >= limit for limit in limits)]
