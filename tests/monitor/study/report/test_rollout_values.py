"""One value per rollout against numpy, and its difference against scipy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")

from scipy import stats

from monitor.study.report.rollout_values import VALUES, metric_differences, root_mean_square
from monitor.study.runs import Run
from monitor.study.statistics.association import holm

METRICS = ("TB-E", "A-AI", "TI", "EV")


@pytest.mark.parametrize("name", list(VALUES))
def test_nothing_known_is_no_value(name: str) -> None:
    assert VALUES[name]([]) is None
    assert VALUES[name]([None] * 20) is None


def test_values_of_a_rollout() -> None:
    series = [None, None, *np.arange(1.0, 11.0).tolist()]
    assert VALUES["mean"](series) == 5.5
    assert VALUES["max"](series) == 10.0
    assert VALUES["peak8"](series) == np.mean(np.arange(3.0, 11.0))
    assert root_mean_square(series) == pytest.approx(np.sqrt(np.mean(np.arange(1, 11) ** 2.0)))


def test_differences_are_those_of_scipy(watched: Path) -> None:
    run = Run.load(watched)
    found = {one.metric: one for one in metric_differences(run, METRICS)}
    assert list(found) == list(METRICS)
    p_values = []
    for metric in METRICS[:3]:
        solved, failed = (
            [np.mean([v for v in one.series(metric) if v is not None]) for one in run.of(kind)]
            for kind in ("success", "failure")
        )
        mean = found[metric].of["mean"]
        assert mean is not None
        pairs = [(f > s) + 0.5 * (f == s) for f in failed for s in solved]
        assert mean.a12 == pytest.approx(np.mean(pairs))
        test = stats.mannwhitneyu(failed, solved, alternative="two-sided")
        assert mean.p_value == pytest.approx(test.pvalue)
        p_values.append(mean.p_value)
    assert [found[metric].p_holm for metric in METRICS[:3]] == pytest.approx(holm(p_values))
    assert ("rms" in found["TI"].of, "rms" in found["TB-E"].of) == (True, False)
    assert found["EV"].of["mean"] is None  # this policy draws no samples
    assert found["EV"].p_holm is None
