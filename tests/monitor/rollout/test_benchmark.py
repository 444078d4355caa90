from __future__ import annotations

import time
from typing import Any

import pytest

from monitor.pipeline import Monitor
from monitor.rollout import run_episode
from monitor.rollout.benchmark import (
    BenchError,
    StepTimes,
    Timing,
    made_up_steps,
    softmax_ratio,
    time_calls,
)


def test_a_call_takes_what_it_takes() -> None:
    timing = time_calls("sleep", lambda _: time.sleep(0.001), calls=10)
    assert 1000 <= timing.median_us < 20_000
    assert timing.median_us <= timing.p99_us


def test_made_up_steps_are_healthy() -> None:
    high = [1.0] * 7
    monitor = Monitor(action_low=[-x for x in high], action_high=high)
    for step in made_up_steps(40, vocabulary=256):
        decision = monitor.update(step)
        assert decision.faults == ()
    known = {name for name, value in decision.metrics.items() if value is not None}
    assert {"TB-E", "A-AI", "TCP-AI", "TI", "NIS"} <= known


def test_a_real_run_is_timed(fake_env: Any, reacher: Any, monitor: Monitor) -> None:
    times = StepTimes()
    run_episode(fake_env(), reacher(), monitor, (times,))
    policy, watcher = times.table()
    assert policy.calls == watcher.calls == times.steps == 30
    assert watcher.median_us > 0


def test_a_run_that_breaks_at_once_is_not_waited_for(
    fake_env: Any, reacher: Any, monitor: Monitor
) -> None:
    env = fake_env(broken={(0, -1): RuntimeError("no device")})
    with pytest.raises(BenchError, match="no device"):
        run_episode(env, reacher(), monitor, (StepTimes(),))


def test_the_ratio_is_of_equal_logits() -> None:
    names = {"update, logits 7×32064": 180.0, "torch.softmax alone, logits 7×32064": 90.0}
    rows = [Timing(what=k, median_us=v, p99_us=v, calls=1) for k, v in names.items()]
    assert softmax_ratio(rows) == 2.0
    assert softmax_ratio(rows[:1]) is None
