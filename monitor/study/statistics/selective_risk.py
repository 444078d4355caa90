"""Selective risk: how much worse it gets as less certain episodes are kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from monitor.errors import ConfigError
from monitor.records import FloatArray

__all__ = ["SelectiveRisk", "expected_calibration_error", "selective_risk"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SelectiveRisk:
    """Risk against coverage.

    Attributes:
        coverage: ``(n + 1,)`` shares of episodes kept, from 0 to 1.
        risk: ``(n + 1,)`` mean loss of those kept; at 0 that of the first.
        aurc: area under the curve, lower is better.
        e_aurc: ``aurc`` beyond that of the order by true loss; 0 is perfect.
    """

    coverage: FloatArray
    risk: FloatArray
    aurc: float
    e_aurc: float


def selective_risk(uncertainty: ArrayLike, loss: ArrayLike) -> SelectiveRisk | None:
    """Return the curve of the episodes in ascending order of uncertainty; None without episodes.

    Ties are averaged over their permutations: each tied episode counts with the mean loss of its
    group, so a constant uncertainty has the risk of the whole set at every coverage.

    Args:
        uncertainty: ``(n,)``, larger = less certain.
        loss: ``(n,)``, for example ``1 - success``.

    >>> selective_risk([0.1, 0.2, 0.9], [0, 0, 1]).e_aurc
    0.0
    """
    order_by = np.asarray(uncertainty, dtype=np.float64)
    losses = np.asarray(loss, dtype=np.float64)
    if order_by.shape != losses.shape or order_by.ndim != 1:
        msg = f"uncertainty {order_by.shape} and loss {losses.shape} must both be (episodes,)"
        raise ConfigError(msg)
    if losses.size == 0:
        return None
    coverage = np.arange(losses.size + 1) / losses.size
    risk = _curve(order_by, losses)
    aurc = _area(risk, coverage)
    best = _area(_curve(losses, losses), coverage)
    return SelectiveRisk(coverage=coverage, risk=risk, aurc=aurc, e_aurc=aurc - best)


def _curve(order_by: FloatArray, losses: FloatArray) -> FloatArray:
    _, group = np.unique(order_by, return_inverse=True)
    means = np.bincount(group, weights=losses) / np.bincount(group)
    ordered = means[np.sort(group)]
    kept: FloatArray = np.cumsum(ordered) / np.arange(1, ordered.size + 1)
    return np.concatenate([kept[:1], kept])


def _area(risk: FloatArray, coverage: FloatArray) -> float:
    """Trapezoid rule; numpy renamed its own between 1.24 and 2."""
    return float((np.diff(coverage) * (risk[1:] + risk[:-1]) / 2).sum())


def expected_calibration_error(
    probability: ArrayLike, happened: ArrayLike, bins: int = 10
) -> float | None:
    """Mean gap between stated and seen frequency over equal-width bins; None without data.

    >>> expected_calibration_error([0.25, 0.25, 0.25, 0.25], [1, 0, 0, 0])
    0.0
    """
    stated = np.asarray(probability, dtype=np.float64)
    seen = np.asarray(happened, dtype=np.float64)
    if stated.size == 0:
        return None
    if stated.min() < 0 or stated.max() > 1:
        msg = f"probabilities run from {stated.min():g} to {stated.max():g}, expected 0 to 1"
        raise ConfigError(msg)
    index = np.minimum((stated * bins).astype(np.int64), bins - 1)
    gap = np.abs(
        np.bincount(index, weights=stated, minlength=bins)
        - np.bincount(index, weights=seen, minlength=bins)
    )
    return float(gap.sum() / stated.size)
