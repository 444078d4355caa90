from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from monitor.bench.overhead import (
    BenchError,
    StepTimes,
    Timing,
    made_up_steps,
    softmax_ratio,
    time_calls,
)
from monitor.pipeline import Monitor
from monitor.rollout import run_episode
from policies import Observation, PolicyOutput


def test_a_call_is_timed() -> None:
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


class Counting:
    """An environment that ends after 30 steps, or breaks at its reset."""

    action_space = SimpleNamespace(low=-np.ones(7), high=np.ones(7))

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if self._error is not None:
            raise self._error
        self._left = 30
        return {}, {"success": False}

    def step(self, action: Any) -> Any:
        self._left -= 1
        return {}, 0.0, False, self._left == 0, {"success": False}


class Resting:
    """A policy that asks for nothing."""

    name, signals = "resting", frozenset[str]()

    def reset(self, instruction: str) -> None: ...

    def act(self, observation: Observation) -> PolicyOutput:
        return PolicyOutput(action=np.zeros(7))


def monitor() -> Monitor:
    return Monitor(action_low=-np.ones(7), action_high=np.ones(7))


def test_a_real_run_is_timed() -> None:
    times = StepTimes()
    run_episode(Counting(), Resting(), monitor(), (times,))
    policy, watcher = times.table()
    assert policy.calls == watcher.calls == times.steps == 30
    assert watcher.median_us > 0


def test_a_run_that_breaks_at_once_is_not_waited_for() -> None:
    with pytest.raises(BenchError, match="no device"):
        run_episode(Counting(RuntimeError("no device")), Resting(), monitor(), (StepTimes(),))


def test_the_ratio_is_of_equal_logits() -> None:
    names = {"update, logits 7×32064": 180.0, "torch.softmax alone, logits 7×32064": 90.0}
    rows = [Timing(what=k, median_us=v, p99_us=v, calls=1) for k, v in names.items()]
    assert softmax_ratio(rows) == 2.0
    assert softmax_ratio(rows[:1]) is None
