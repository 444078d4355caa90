from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from monitor import Monitor, Step
from monitor.metrics.sample_spread import execution_variability

LOW = np.array([-0.05] * 3 + [-0.25] * 3 + [-1.0])


def test_ev_is_the_mean_population_deviation_of_normalised_samples(
    make_monitor: Callable[..., Monitor],
) -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(4, 7)) * 0.1
    got = make_monitor().update(Step(action=samples[0], samples=samples)).metrics["EV"]
    normal = np.clip((samples - LOW) / (-2 * LOW), 0, 1)
    assert got == pytest.approx(np.std(normal, axis=0, ddof=0).mean(), abs=1e-12)


def test_a_deterministic_policy_is_uninformative_not_certain(
    make_monitor: Callable[..., Monitor],
) -> None:
    decision = make_monitor().update(Step(action=np.zeros(7), samples=np.zeros((4, 7))))
    assert decision.metrics["EV"] is None
    assert [fault.code for fault in decision.faults] == ["EV_UNINFORMATIVE"]
    assert not decision.alerts
    assert np.isnan(execution_variability(np.zeros((1, 7))))


def test_robots_together_give_what_each_gives_alone() -> None:
    samples = np.random.default_rng(1).uniform(size=(5, 4, 7))
    samples[2] = samples[2, 0]
    together = execution_variability(samples)
    assert np.isnan(together).tolist() == [False, False, True, False, False]
    np.testing.assert_array_equal(together, [execution_variability(each) for each in samples])
