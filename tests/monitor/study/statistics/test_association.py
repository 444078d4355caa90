from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from monitor.study.statistics.association import difference, holm, spearman


def test_spearman_is_scipys_and_none_for_a_constant() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random(40), rng.integers(1, 5, 40)
    found = spearman(x, y)
    assert found is not None
    assert (found.rho, found.p_value) == pytest.approx(tuple(stats.spearmanr(x, y)))
    assert spearman([1.0, 1.0, 1.0], [1, 2, 3]) is None
    strong = spearman([1, 2, 3, 4], [1, 2, 3, 4])
    assert strong is not None
    assert strong.size == "large"


def test_a12_by_its_definition() -> None:
    rng = np.random.default_rng(1)
    solved, failed = rng.integers(0, 9, 20), rng.integers(2, 11, 30)
    pairs = [(a > b) + 0.5 * (a == b) for a in failed for b in solved]
    found = difference(solved, failed)
    assert found is not None
    assert found.a12 == pytest.approx(np.mean(pairs))
    assert found.p_value == pytest.approx(stats.mannwhitneyu(failed, solved).pvalue)
    assert difference([], [1.0]) is None


def test_holm_never_falls_and_never_passes_one() -> None:
    assert holm([0.01, 0.02, 0.9]) == pytest.approx([0.03, 0.04, 0.9])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []
