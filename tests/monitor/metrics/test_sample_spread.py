from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from monitor import Monitor, Step
from monitor.metrics.chunk_consistency import chunk_inconsistency
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


@pytest.mark.parametrize("drop", [0, 1, 3])
def test_plans_that_agree_where_they_overlap_are_consistent(drop: int) -> None:
    plan = np.random.default_rng(1).uniform(size=(9, 7))
    last, now = plan[: 8 - drop], plan[1:]
    assert chunk_inconsistency(last, now) == 0.0
    assert chunk_inconsistency(last, now + 0.1) == pytest.approx(0.1)
    assert chunk_inconsistency(plan[:1], now) is None


def test_a_step_without_a_plan_breaks_the_comparison(make_monitor: Callable[..., Monitor]) -> None:
    monitor = make_monitor()
    plan = np.zeros((4, 7))
    got = [
        monitor.update(Step(action=np.zeros(7), chunk=chunk)).metrics["CHUNK"]
        for chunk in (plan, plan, None, plan, plan)
    ]
    assert got == [None, 0.0, None, None, 0.0]


def test_the_layout_of_samples_and_plans_is_not_seen() -> None:
    rng = np.random.default_rng(3)
    one, other = (Monitor(action_low=[-1.0] * 14, action_high=[1.0] * 14) for _ in range(2))
    for _ in range(20):
        samples, plan = rng.normal(size=(2, 5, 14))
        a = one.update(Step(action=plan[0], samples=samples, chunk=plan)).metrics
        b = other.update(
            Step(action=plan[0], samples=np.asfortranarray(samples), chunk=np.asfortranarray(plan))
        ).metrics
        assert (a["EV"], a["CHUNK"]) == (b["EV"], b["CHUNK"])
