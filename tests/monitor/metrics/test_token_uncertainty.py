from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from monitor.metrics.token_uncertainty import TOKEN_METRICS, softmax


@pytest.mark.parametrize("shape", [(1, 2), (7, 256), (3, 5000)])
@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 30.0, 1e4])
def test_formulas_equal_scipys(shape: tuple[int, int], scale: float) -> None:
    logits = np.random.default_rng(shape[1]).normal(size=shape) * scale
    p = special.softmax(logits, axis=1)
    np.testing.assert_allclose(softmax(logits), p, rtol=1e-9)
    v = shape[1]
    ordered = np.sort(p, axis=1)
    first, second = ordered[:, -1], ordered[:, -2]
    wanted = {
        "TB-TP": 1.0 - (first - 1.0 / v) / (1.0 - 1.0 / v),
        "TB-PCS": 1.0 - (first - second),
        "TB-D": (1.0 - (p**2).sum(axis=1)) / (1.0 - 1.0 / v),
        "TB-E": stats.entropy(p, axis=1) / np.log(v),
    }
    assert wanted.keys() == TOKEN_METRICS.keys()
    for name, formula in TOKEN_METRICS.items():
        np.testing.assert_allclose(formula(p), wanted[name], atol=1e-12)


def test_a_row_without_a_finite_largest_logit_is_nan() -> None:
    logits = np.zeros((4, 3))
    logits[0, 1], logits[1, 1], logits[2] = np.nan, np.inf, -np.inf
    p = softmax(logits)
    assert np.isnan(p[:3, 1]).all()
    for formula in TOKEN_METRICS.values():
        assert np.isnan(formula(p)).tolist() == [True, True, True, False]
