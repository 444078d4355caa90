"""Fit the distance filter's noises: the ones under which recorded distances are likeliest.

The paper (Darabi et al., arXiv 2606.20479) fixes neither. The likelihood is that of the
innovations, nu_t ~ N(0, S_t), which the filter itself yields; all episodes share one model.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, isnan, log, nan, pi

import numpy as np

from monitor.belief.kalman import KalmanModel, State, advance
from monitor.calibration import FilterNoise
from monitor.config import BeliefConfig
from monitor.errors import CalibrationError
from monitor.records import FloatArray
from monitor.study.extras import require

__all__ = ["fit_noise", "log_likelihood"]

LEAST_INNOVATIONS = 50
"""Fewer say next to nothing about three variances."""
LEAST_STD = 1e-6
"""Metres; a simulator's distance may have no noise at all, but the filter needs some."""

Distances = Sequence[float | None]


def log_likelihood(episodes: Sequence[Distances], model: KalmanModel) -> float:
    """Return the logarithm of the likelihood of the episodes' distances, None where unknown.

    >>> model = KalmanModel(q_distance=0.0, q_velocity=0.0, r=1.0, initial_velocity=1e-9)
    >>> round(log_likelihood([[1.0, 1.0]], model), 3)
    -0.924
    """
    total = 0.0
    for episode in episodes:
        state = State()
        for distance in episode:
            innovation, variance = advance(state, nan if distance is None else distance, model)
            if not isnan(innovation):
                nis = innovation * innovation / variance
                total -= 0.5 * (log(2.0 * pi * variance) + nis)
    return total


def fit_noise(episodes: Sequence[Distances], start: BeliefConfig) -> FilterNoise:
    """Return the likeliest standard deviations, per step.

    Args:
        episodes: goal distances, metres; None where unknown.
        start: where the search begins; its initial variances are kept.

    Raises:
        CalibrationError: there are too few distances.
        MissingExtraError: scipy is not installed.
    """
    known = sum(max(sum(d is not None for d in one) - 1, 0) for one in episodes)
    if known < LEAST_INNOVATIONS:
        msg = (
            f"the filter's noises need at least {LEAST_INNOVATIONS} changes of a known goal "
            f"distance, there are {known}; record more episodes, or leave the noises as configured"
        )
        raise CalibrationError(msg)

    def loss(logs: FloatArray) -> float:
        value = -log_likelihood(episodes, KalmanModel.of(start, _noise(logs)))
        return value if value == value else inf

    first = min(_starts(episodes, start), key=loss)
    simplex = np.stack([first, *(first + np.eye(3))])
    options = {"xatol": 1e-2, "fatol": 1e-2, "maxiter": 300, "initial_simplex": simplex}
    minimize = require("scipy.optimize").minimize
    found = minimize(loss, first, method="Nelder-Mead", options=options)
    return _noise(found.x)


def _starts(episodes: Sequence[Distances], configured: BeliefConfig) -> list[FloatArray]:
    """Where to begin: as configured, or with the data's own jitter laid to one noise or another."""
    bends = [
        c - 2.0 * b + a
        for one in episodes
        for a, b, c in zip(one, one[1:], one[2:], strict=False)
        if a is not None and b is not None and c is not None
    ]
    jitter = float(np.std(bends)) if bends else configured.measurement_std_m
    given = (
        configured.measurement_std_m,
        configured.process_std_m,
        configured.process_std_velocity,
    )
    # Of measurement noise alone the second differences have six times the variance.
    shares = np.array([[0.4, 0.1, 0.1], [0.1, 0.7, 0.1], [0.1, 0.1, 1.0]])
    rows = np.vstack([given, jitter * shares])
    return list(np.log(np.maximum(rows, 10.0 * LEAST_STD)))


def _noise(logs: FloatArray) -> FilterNoise:
    stds = [exp(min(max(x, log(LEAST_STD)), 5.0)) for x in logs.tolist()]
    return FilterNoise(
        measurement_std_m=stds[0], process_std_m=stds[1], process_std_velocity=stds[2]
    )
