"""Probabilities against scikit-learn, and on scores whose probability is known."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy.optimize import minimize

from monitor.errors import CalibrationError
from monitor.study.statistics.probability import METHODS, fit_platt, reliability


def drawn(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores in [0, 1], and failures that happen with exactly that probability."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=count)
    return scores, (rng.uniform(size=count) < scores).astype(float)


def test_platt_is_the_likeliest_line_for_his_targets() -> None:
    x, y = drawn(60)
    bad, good = y.sum(), (1 - y).sum()
    target = np.where(y > 0, (bad + 1) / (bad + 2), 1 / (good + 2))

    def loss(line: np.ndarray) -> float:
        z = line[0] * x + line[1]
        return float((np.logaddexp(0.0, z) - target * z).sum())

    best = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-9}).x
    at = np.linspace(-0.5, 1.5, 11)
    np.testing.assert_allclose(
        fit_platt(x, y)(at), 1 / (1 + np.exp(-(best[0] * at + best[1]))), atol=1e-5
    )


@pytest.mark.parametrize("method", list(METHODS))
def test_honest_scores_give_honest_probabilities(method: str) -> None:
    x, y = drawn(3000)
    found = reliability(x, y, method)
    assert found is not None
    assert found.ece < 0.06
    assert found.brier < 0.8 * found.base
    assert np.abs(found.probability - x).mean() < 0.06


@pytest.mark.parametrize("method", list(METHODS))
def test_scores_that_say_nothing_are_no_better_than_the_share(method: str) -> None:
    _, y = drawn(400)
    noise = np.random.default_rng(5).uniform(size=400)
    found = reliability(noise, y, method)
    assert found is not None
    assert found.brier > 0.95 * found.base


@pytest.mark.parametrize("method", list(METHODS))
def test_separate_and_constant_scores_stay_finite(method: str) -> None:
    y = np.repeat([0.0, 1.0], 10)
    for x in (y, np.full(20, 0.3), np.linspace(0, 1, 20)):
        found = reliability(x, y, method)
        assert found is not None
        assert np.isfinite(found.probability).all()
        assert ((found.probability >= 0) & (found.probability <= 1)).all()


def test_too_few_of_a_kind_have_no_probability() -> None:
    assert reliability(np.zeros(30), [1.0] * 4 + [0.0] * 26) is None
    with pytest.raises(CalibrationError, match=r"scores \(2,\) and failed \(3,\)"):
        reliability([0.1, 0.2], [0, 1, 1])
