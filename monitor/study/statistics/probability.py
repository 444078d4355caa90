"""From a score to a probability of failure, fitted on held-out rollouts.

Platt's sigmoid (Platt 1999, with his softened targets, so that two separate classes do not end in
certainty) or isotonic regression. Every probability comes from a fit that has not seen its episode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from monitor.errors import CalibrationError
from monitor.records import FloatArray
from monitor.study.extras import require
from monitor.study.statistics.selective_risk import expected_calibration_error

__all__ = ["METHODS", "Reliability", "fit_isotonic", "fit_platt", "reliability"]

Probability = Callable[[ArrayLike], FloatArray]

FOLDS: Final = 5
RIDGE: Final = 1e-9
"""L2 penalty of the slope, which has no other bound where all scores are equal."""


def fit_platt(scores: ArrayLike, failed: ArrayLike) -> Probability:
    """Fit a sigmoid of a straight line in the score by maximum likelihood.

    Args:
        scores: ``(n,)``.
        failed: ``(n,)`` 0 or 1.

    Raises:
        MissingExtraError: scikit-learn is not installed.

    >>> p = fit_platt([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    >>> bool(p([0.1])[0] < 0.5 < p([0.9])[0])
    True
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(failed, dtype=np.float64)
    bad, good = y.sum(), y.size - y.sum()
    target = np.where(y > 0, (bad + 1.0) / (bad + 2.0), 1.0 / (good + 2.0))
    centre, spread = float(x.mean()), float(x.std()) or 1.0

    def column(at: ArrayLike) -> FloatArray:
        return ((np.asarray(at, dtype=np.float64) - centre) / spread).reshape(-1, 1)

    # Each episode counts as a failure by its target and as a success by the rest.
    model = require("sklearn.linear_model").LogisticRegression(C=1 / RIDGE, tol=1e-10)
    model.fit(
        np.vstack([column(x), column(x)]),
        np.repeat([1, 0], y.size),
        sample_weight=np.concatenate([target, 1.0 - target]),
    )
    return lambda at: np.asarray(model.predict_proba(column(at))[:, 1])


def fit_isotonic(scores: ArrayLike, failed: ArrayLike) -> Probability:
    """Fit rising steps to the shares of failures; a score out of range gets the nearest share.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    kind = require("sklearn.isotonic").IsotonicRegression
    model = kind(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(
        np.asarray(scores, dtype=np.float64), np.asarray(failed, dtype=np.float64)
    )
    return lambda at: np.asarray(model.predict(np.asarray(at, dtype=np.float64)))


METHODS: Final[Mapping[str, Callable[[ArrayLike, ArrayLike], Probability]]] = MappingProxyType(
    {"platt": fit_platt, "isotonic": fit_isotonic}
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reliability:
    """How far stated probabilities of failure are from what happened.

    Attributes:
        method: one of :data:`METHODS`.
        probability: ``(n,)`` of each episode, by a fit without it.
        ece: expected calibration error over 10 bins, 0 is perfect.
        brier: mean squared error.
        base: mean squared error of the plain share of failures, to compare ``brier`` with.
    """

    method: str
    probability: FloatArray
    ece: float
    brier: float
    base: float


def reliability(scores: ArrayLike, failed: ArrayLike, method: str = "platt") -> Reliability | None:
    """Fit on four fifths of the episodes, state on the fifth, in turn.

    Args:
        scores: ``(n,)``, for example peak scores.
        failed: ``(n,)`` 0 or 1.
        method: one of :data:`METHODS`.

    Returns:
        None with fewer than 5 failures or 5 successes.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(failed, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        msg = f"scores {x.shape} and failed {y.shape} must both be (episodes,)"
        raise CalibrationError(msg)
    if min(y.sum(), y.size - y.sum()) < FOLDS:
        return None
    # Dealt out by outcome, so that every part has both.
    fold = np.empty(y.size, dtype=np.int64)
    for outcome in (0.0, 1.0):
        members = np.flatnonzero(y == outcome)
        fold[members] = np.arange(members.size) % FOLDS
    stated = np.empty(y.size)
    for part in range(FOLDS):
        held = fold == part
        stated[held] = METHODS[method](x[~held], y[~held])(x[held])
    ece = expected_calibration_error(stated, y)
    share = float(y.mean())
    return Reliability(
        method=method,
        probability=stated,
        ece=0.0 if ece is None else ece,
        brier=float(((stated - y) ** 2).mean()),
        base=share * (1.0 - share),
    )
