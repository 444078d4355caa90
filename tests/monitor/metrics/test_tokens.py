from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from monitor.metrics.tokens import peaks, token_metrics


def reference(logits: np.ndarray) -> np.ndarray:
    p = special.softmax(logits.astype(np.float64), axis=1)
    v = p.shape[1]
    ordered = np.sort(p, axis=1)
    p1, p2 = ordered[:, -1], ordered[:, -2]
    return np.stack(
        [
            1.0 - (p1 - 1.0 / v) / (1.0 - 1.0 / v),
            1.0 - (p1 - p2),
            (1.0 - (p**2).sum(axis=1)) / (1.0 - 1.0 / v),
            stats.entropy(p, axis=1) / np.log(v),
        ]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 2), (7, 256), (56, 300), (7, 32064)])
@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 30.0, 1e4])
def test_values_equal_scipy(dtype: type, shape: tuple[int, int], scale: float) -> None:
    rng = np.random.default_rng(shape[1])
    logits: np.ndarray = (rng.normal(size=shape) * scale).astype(dtype)
    view = token_metrics(logits, peaks(logits))
    np.testing.assert_allclose(view.values, reference(logits), atol=2e-6)
    expected = special.logsumexp(logits.astype(np.float64), axis=1)
    np.testing.assert_allclose(view.log_z, expected, rtol=1e-6, atol=1e-5)


def test_a_masked_class_counts_for_nothing() -> None:
    logits = np.array([[1.0, 2.0, -np.inf]])
    view = token_metrics(logits, peaks(logits))
    assert view.values[3, 0] * np.log(3) == pytest.approx(0.582203, abs=1e-6)


def test_one_class_left_is_certain() -> None:
    logits = np.array([[-np.inf, 5.0, -np.inf]], dtype=np.float32)
    np.testing.assert_allclose(token_metrics(logits, peaks(logits)).values, 0.0, atol=1e-7)


def test_values_stay_in_the_unit_interval_and_inputs_untouched() -> None:
    logits = np.random.default_rng(0).normal(size=(200, 17)).astype(np.float32) * 40
    before = logits.copy()
    values = token_metrics(logits, peaks(logits)).values
    assert values.min() >= 0.0
    assert values.max() <= 1.0
    np.testing.assert_array_equal(logits, before)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_peak_of_a_row_is_not_finite_exactly_where_the_row_is_unusable(bad: float) -> None:
    logits = np.zeros((3, 5))
    logits[1, 2] = bad
    assert np.isfinite(peaks(logits).value).tolist() == [True, False, True]
    logits[1] = -np.inf
    assert np.isfinite(peaks(logits).value).tolist() == [True, False, True]
