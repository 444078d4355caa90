"""Weights of a grade by a search of the genetic kind: differential evolution.

It minimises the mean absolute difference between the ranks of S_raw and of the experts' mean
scores. It begins at equal weights, and so never ends worse than they are on what it is given.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from monitor.records import FloatArray
from monitor.study.extras import require

__all__ = ["fit_weights", "rank_loss"]

GENERATIONS: Final = 200
MEMBERS: Final = 20
"""Members of the population per weight."""


def rank_loss(weights: ArrayLike, parts: FloatArray, experts: ArrayLike) -> FloatArray:
    """Mean absolute difference of ranks, ties at their mean rank, of P vectors of weights.

    Args:
        weights: ``(m, P)``, at least 0.
        parts: ``(n, m)`` penalised indicators s_i'.
        experts: ``(n,)`` mean scores.

    Returns:
        ``(P,)``, 0 where the order is the experts'.
    """
    rank = require("scipy.stats").rankdata
    given = np.asarray(weights, dtype=np.float64)
    # Rounded, so that equal rollouts stay equal whatever the order of the sums.
    raw = np.round(parts @ (given / np.maximum(given.sum(axis=0), 1e-12)), 12)
    differences: FloatArray = np.abs(rank(raw, axis=0) - rank(experts)[:, None]).mean(axis=0)
    return differences


def fit_weights(parts: FloatArray, experts: ArrayLike, *, seed: int) -> FloatArray:
    """Weights whose S_raw ranks the episodes most as the experts do (Storn and Price 1997).

    Several vectors of weights may rank alike; this is one of the best that were met.

    Args:
        parts: ``(n, m)`` penalised indicators s_i'.
        experts: ``(n,)`` mean scores.
        seed: seed of the search.

    Returns:
        ``(m,)``, at least 0, with the sum 1.
    """
    m = parts.shape[1]
    found = require("scipy.optimize").differential_evolution(
        rank_loss,
        [(0.0, 1.0)] * m,
        args=(parts, experts),
        x0=np.full(m, 0.5),
        popsize=MEMBERS,
        maxiter=GENERATIONS,
        seed=seed,
        polish=False,  # steps have no slope
        vectorized=True,
        updating="deferred",
    )
    equal = np.full((m, 1), 1 / m)
    if float(found.fun) >= float(rank_loss(equal, parts, experts)[0]):
        return equal[:, 0]  # nothing was found that they do not do as well
    weights: FloatArray = np.asarray(found.x, dtype=np.float64)
    normed: FloatArray = weights / weights.sum()
    return normed
