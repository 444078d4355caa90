from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy.integrate import trapezoid

from monitor.errors import ConfigError
from monitor.records import FloatArray
from monitor.study.statistics.selective_risk import expected_calibration_error, selective_risk


def brute_force(uncertainty: list[int], loss: list[int]) -> FloatArray:
    """Mean risk at every coverage over all orders that the uncertainty allows."""
    curves = []
    for order in permutations(range(len(loss))):
        if all(uncertainty[a] <= uncertainty[b] for a, b in pairwise(order)):
            kept = np.array([loss[i] for i in order], dtype=float)
            curves.append(np.cumsum(kept) / np.arange(1, len(loss) + 1))
    mean: FloatArray = np.mean(curves, axis=0)
    return mean


def test_ties_are_the_mean_over_their_permutations() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        uncertainty = rng.integers(0, 3, 6).tolist()
        loss = rng.integers(0, 2, 6).tolist()
        found = selective_risk(uncertainty, loss)
        assert found is not None
        risk = brute_force(uncertainty, loss)
        np.testing.assert_allclose(found.risk[1:], risk, atol=1e-12)
        expected = trapezoid(np.concatenate([risk[:1], risk]), np.arange(7) / 6)
        assert found.aurc == pytest.approx(expected)
        assert found.e_aurc >= -1e-12


def test_a_constant_has_the_risk_of_the_whole_set_everywhere() -> None:
    found = selective_risk([0.5] * 5, [1, 0, 0, 1, 1])
    assert found is not None
    np.testing.assert_allclose(found.risk, 0.6)
    assert selective_risk([], []) is None
    with pytest.raises(ConfigError, match="both be"):
        selective_risk([1.0], [])


def test_calibration_error_by_hand() -> None:
    stated, seen = [0.05, 0.15, 0.15, 1.0], [0, 0, 1, 1]
    assert expected_calibration_error(stated, seen) == pytest.approx((0.05 + 0.7 + 0.0) / 4)
    assert expected_calibration_error([], []) is None
    with pytest.raises(ConfigError, match="0 to 1"):
        expected_calibration_error([1.2], [1])
