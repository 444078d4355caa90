from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from monitor.study.statistics.detection import auroc, bootstrap_auroc, peak_of_means, prefix_peak


def test_auroc_is_sklearns_with_ties() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        good = rng.integers(0, 6, rng.integers(1, 30)).astype(float)
        bad = rng.integers(1, 8, rng.integers(1, 30)).astype(float)
        truth = [0] * good.size + [1] * bad.size
        expected = roc_auc_score(truth, np.concatenate([good, bad]))
        assert auroc(good, bad) == pytest.approx(expected, abs=1e-12)


def test_an_empty_class_has_no_auroc() -> None:
    assert auroc([], [1.0]) is None
    assert bootstrap_auroc([1.0], []) is None


def test_bootstrap_interval_covers_the_truth() -> None:
    rng = np.random.default_rng(1)
    truth, inside = 0.7602, 0  # of N(0, 1) against N(1, 1): Phi(1 / sqrt(2))
    for seed in range(100):
        found = bootstrap_auroc(
            rng.standard_normal(60).tolist(),
            (rng.standard_normal(60) + 1).tolist(),
            seed=seed,
            draws=300,
        )
        assert found is not None
        assert found.low <= found.value <= found.high
        inside += found.low <= truth <= found.high
    assert inside >= 85


def test_bootstrap_is_repeatable() -> None:
    a, b = [0.1, 0.5, 0.2, 0.7], [0.4, 0.9, 0.3]
    assert bootstrap_auroc(a, b, seed=3) == bootstrap_auroc(a, b, seed=3)


def test_prefix_looks_at_no_later_step() -> None:
    scores = [None, 0.1, 0.4, None, 0.9]
    assert [prefix_peak(scores, k) for k in (1, 2, 4, 5, 99)] == [None, 0.1, 0.4, 0.9, 0.9]
    assert prefix_peak(scores) == 0.9
    assert prefix_peak([]) is None


def test_peak_of_means_is_the_convolution() -> None:
    values = np.random.default_rng(2).random(50)
    expected = np.convolve(values, np.ones(8) / 8, mode="valid").max()
    assert peak_of_means(values.tolist()) == pytest.approx(expected)
    assert peak_of_means([None] * 20) is None
    assert peak_of_means([1.0] * 7) is None
