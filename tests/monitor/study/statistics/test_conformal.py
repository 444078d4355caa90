from __future__ import annotations

import numpy as np
import pytest

from monitor.errors import CalibrationError
from monitor.study.statistics.conformal import (
    conformal_rank,
    conformal_threshold,
    episodes_needed,
    functional_band,
)


def test_rank_is_exact_where_floats_are_not() -> None:
    assert conformal_rank(19, 0.05) == 19
    assert conformal_rank(9, 0.1) == 9
    assert conformal_rank(99, 0.1) == 90
    assert conformal_rank(100, 0.1) == 91


@pytest.mark.parametrize("alpha", [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5])
def test_refuses_just_below_what_is_needed(alpha: float) -> None:
    needed = episodes_needed(alpha)
    assert conformal_rank(needed, alpha) == needed
    with pytest.raises(CalibrationError, match="1 more"):
        conformal_rank(needed - 1, alpha)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, float("nan")])
def test_refuses_an_alpha_that_is_none(alpha: float) -> None:
    with pytest.raises(CalibrationError, match="between 0 and 1"):
        episodes_needed(alpha)


@pytest.mark.parametrize("n", [20, 50])
def test_false_alarm_rate_holds_on_fresh_scores(n: int) -> None:
    rng = np.random.default_rng(1)
    thresholds = [conformal_threshold(rng.standard_normal(n), 0.05) for _ in range(4000)]
    rate = np.mean(rng.standard_normal(4000) >= np.array(thresholds))
    assert rate < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)
    assert rate > 0.02


def test_a_score_equal_to_the_rank_does_not_alarm() -> None:
    scores = [0.2] * 30
    assert conformal_threshold(scores, 0.1) > 0.2


def test_band_holds_on_fresh_curves() -> None:
    rng = np.random.default_rng(2)
    left = []
    for _ in range(400):
        curves = rng.standard_normal((41, 15)).cumsum(axis=1)
        band = functional_band(curves[:-1], 0.1)
        left.append((curves[-1] > band).any())
    assert np.mean(left) < 0.1 + 3 * np.sqrt(0.1 * 0.9 / 400)
    with pytest.raises(CalibrationError, match="few"):
        functional_band(np.zeros((5, 3)), 0.05)


def test_lower_band_is_the_upper_one_mirrored() -> None:
    rng = np.random.default_rng(3)
    curves = rng.standard_normal((40, 15))
    centre = curves[:20].mean(axis=0)
    lower = -functional_band(-curves, 0.1)
    spread = np.abs(curves[:20] - centre).max(axis=0)
    widths = np.sort(((centre - curves[20:]) / spread).max(axis=1))
    np.testing.assert_allclose(lower, centre - widths[conformal_rank(20, 0.1) - 1] * spread)
