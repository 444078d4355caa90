from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from monitor.errors import ConfigError
from monitor.study.statistics.intervals import mcnemar_exact, wilson


@pytest.mark.parametrize("total", [1, 2, 8, 16, 100, 5000])
def test_wilson_is_scipys(total: int) -> None:
    for count in {0, 1, total // 3, total - 1, total}:
        expected = stats.binomtest(count, total).proportion_ci(method="wilson")
        rate = wilson(count, total)
        assert rate.low == pytest.approx(expected.low, abs=1e-12)
        assert rate.high == pytest.approx(expected.high, abs=1e-12)


def test_published_intervals() -> None:
    assert (round(wilson(69, 100).low, 2), round(wilson(69, 100).high, 2)) == (0.59, 0.77)
    assert (round(wilson(6, 8).low, 3), round(wilson(6, 8).high, 3)) == (0.409, 0.929)


def test_no_trials_are_no_data() -> None:
    rate = wilson(0, 0)
    assert (rate.value, rate.low, rate.high) == (None, 0.0, 1.0)
    with pytest.raises(ConfigError, match="between 0 and the total"):
        wilson(3, 2)


def test_mcnemar_is_the_binomial_test() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = rng.random(30) < 0.5, rng.random(30) < 0.7
        found = mcnemar_exact(a.tolist(), b.tolist())
        changed = found.gained + found.lost
        expected = stats.binomtest(found.gained, changed).pvalue if changed else 1.0
        assert found.p_value == pytest.approx(expected)
        assert found.gained - found.lost == b.sum() - a.sum()
