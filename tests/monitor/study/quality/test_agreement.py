from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")
from scipy.stats import spearmanr

from monitor.records import FloatArray
from monitor.study.quality.agreement import Estimate, icc, leave_one_out, r_l2, srcc
from monitor.study.quality.ratings import Ratings

SHROUT_FLEISS = [
    [9, 2, 5, 8],
    [6, 1, 3, 2],
    [8, 4, 6, 8],
    [7, 1, 2, 6],
    [10, 5, 6, 9],
    [6, 2, 4, 7],
]


def test_the_textbook_table_has_the_textbook_coefficients() -> None:
    found = icc(SHROUT_FLEISS)  # Shrout and Fleiss 1979
    assert found.single.value == pytest.approx(0.29, abs=0.005)
    assert found.average.value == pytest.approx(0.62, abs=0.005)
    # Their intervals as the package psych of R prints them for this table.
    assert (found.single.low, found.single.high) == pytest.approx((0.019, 0.76), abs=0.005)
    assert (found.average.low, found.average.high) == pytest.approx((0.071, 0.93), abs=0.005)
    assert found.single.episodes == 6


def squares(table: FloatArray) -> tuple[float, float, float]:
    """Mean squares by least squares on dummy columns, one model inside the next."""
    n, k = table.shape
    rows, columns = np.repeat(np.eye(n), k, axis=0), np.tile(np.eye(k), (n, 1))
    ones, y = np.ones((n * k, 1)), table.ravel()

    def rest(*parts: FloatArray) -> float:
        x = np.hstack(parts)
        return float(((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2).sum())

    both = rest(ones, rows, columns)
    bms = (rest(ones) - rest(ones, rows)) / (n - 1)
    jms = (rest(ones, rows) - both) / (k - 1)
    return bms, jms, both / ((n - 1) * (k - 1))


def test_icc_is_that_of_an_analysis_of_variance_by_regression() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        n, k = int(rng.integers(5, 20)), int(rng.integers(2, 6))
        table = rng.integers(1, 11, (n, k)) + rng.normal(0, 2, (n, 1))
        bms, jms, ems = squares(table)
        found = icc(table)
        single = (bms - ems) / (bms + (k - 1) * ems + k * (jms - ems) / n)
        assert found.single.value == pytest.approx(single, abs=1e-9)
        if found.average.value is not None:
            average = (bms - ems) / (bms + (jms - ems) / n)
            assert found.average.value == pytest.approx(average, abs=1e-9)
            assert average == pytest.approx(k * single / (1 + (k - 1) * single), abs=1e-9)


def test_the_interval_of_icc_covers_the_truth() -> None:
    rng, inside = np.random.default_rng(1), 0
    for _ in range(300):  # variances 4 of episodes, 0.5 of raters, 1 of the rest
        table = 2 * rng.normal(size=(25, 1)) + np.sqrt(0.5) * rng.normal(size=(1, 6))
        found = icc(table + rng.normal(size=(25, 6))).single
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= 4 / 5.5 <= found.high
    assert 0.91 <= inside / 300 <= 0.99


def test_raters_who_say_the_same_agree_fully_and_those_who_say_nothing_have_no_agreement() -> None:
    same = np.repeat(np.arange(1.0, 7.0)[:, None], 3, axis=1)
    assert icc(same).single == Estimate(value=1.0, episodes=6)
    assert icc(same).average.value == 1.0
    assert icc(same + np.arange(3.0)).single.value == pytest.approx(3.5 / (3.5 + 1.0))
    for table in (np.full((6, 3), 5.0), same[:1], same[:, :1], np.empty((0, 0))):
        assert icc(table).single.value is None
        assert icc(table).average.value is None


def test_srcc_is_scipys_with_ties() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        one, two = rng.integers(1, 11, 20), rng.normal(size=20).round(1)
        assert srcc(one, two).value == pytest.approx(spearmanr(one, two).statistic, abs=1e-12)


def test_the_interval_of_srcc_covers_the_truth() -> None:
    rng, inside = np.random.default_rng(3), 0
    truth = 6 / np.pi * np.arcsin(0.7 / 2)  # of a normal pair with correlation 0.7
    for _ in range(400):
        x, y = rng.normal(size=(2, 30))
        found = srcc(x, 0.7 * x + np.sqrt(1 - 0.49) * y)
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= truth <= found.high
    assert 0.91 <= inside / 400 <= 0.99


def test_a_correlation_that_is_not_defined_is_none() -> None:
    assert srcc([], []) == Estimate(value=None, episodes=0)
    assert srcc([1, 2], [1, 2]).value is None
    assert srcc([4, 4, 4, 4, 4], [1, 2, 3, 4, 5]).value is None
    assert srcc(range(9), range(9)) == Estimate(value=1.0, episodes=9)  # no interval at the end
    assert srcc([1, 2, 3, 4], [1, 3, 2, 4]).low is None


def test_r_l2_is_the_mean_error_by_the_scale() -> None:
    assert r_l2([1.0, 10.0], [10, 1]) == Estimate(value=1.0, episodes=2)
    found = r_l2([4.0, 5.5, 7.0, 2.0, 9.0], [5.0, 5.5, 4.0, 2.5, 9.0])
    assert found.value == pytest.approx((1 + 0 + 3 + 0.5 + 0) / 5 / 9)
    assert found == r_l2([4.0, 5.5, 7.0, 2.0, 9.0], [5.0, 5.5, 4.0, 2.5, 9.0])
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low < found.value < found.high <= 3 / 9
    assert r_l2([], []).value is None


def test_each_rater_is_compared_with_the_mean_of_the_others() -> None:
    ada, bo = [1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5]
    cy = {0: 9, 1: 7, 2: 5, 4: 1}
    found = leave_one_out(
        Ratings(by={"ada": dict(enumerate(ada)), "bo": dict(enumerate(bo)), "cy": cy})
    )
    others = [(2 + 9) / 2, (1 + 7) / 2, (4 + 5) / 2, 3.0, (6 + 1) / 2, 5.0]
    assert found["ada"].value == pytest.approx(spearmanr(ada, others).statistic)
    assert found["cy"].value == pytest.approx(
        spearmanr([9, 7, 5, 1], [1.5, 1.5, 3.5, 5.5]).statistic
    )
    assert found["cy"].episodes == 4
    assert leave_one_out(Ratings(by={"ada": {0: 1, 1: 2, 2: 3}}))["ada"].value is None
