"""Scalars that a policy measured itself, on their way through the monitor."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from monitor import Monitor, Step
from monitor.records import Evidence

Make = Callable[..., Monitor]
ACTION = [0.0] * 7


def faults(monitor: Monitor, extra: Any) -> list[str]:
    found = monitor.update(Step(action=ACTION, extra=extra)).faults
    return [one.message for one in found if one.code == "METRIC_ERROR"]


def test_they_become_metrics_and_replay(make_monitor: Make) -> None:
    live, again = make_monitor(), make_monitor()
    given = {"PI0-DV": np.float32(0.1), "PI0-SPREAD": None, "their-own": 3}
    decision = live.update(Step(action=ACTION, extra=given))
    assert decision.metrics["PI0-DV"] == float(np.float32(0.1))
    assert decision.metrics["PI0-SPREAD"] is None
    assert decision.metrics["their-own"] == 3.0
    text = json.dumps(decision.evidence.to_json(), allow_nan=False)
    assert again.replay(Evidence.from_json(json.loads(text))).metrics == decision.metrics
    assert live.update(Step(action=ACTION)).metrics["PI0-DV"] is None


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), "much", [1.0, 2.0]])
def test_what_is_no_finite_number_is_unknown_and_a_fault(make_monitor: Make, value: Any) -> None:
    monitor = make_monitor()
    assert faults(monitor, {"PI0-DV": value}) == [
        f"step 0: extra PI0-DV is {value}, expected a finite number"
    ]
    assert monitor.update(Step(action=ACTION, extra={"PI0-DV": value})).metrics["PI0-DV"] is None


def test_the_monitors_own_metrics_are_not_overwritten(make_monitor: Make) -> None:
    monitor = make_monitor()
    assert faults(monitor, {"TB-E": 0.0}) == [
        "step 0: extra TB-E is the monitor's own metric; choose another id"
    ]
    assert faults(monitor, [1.0]) == ["step 1: extra is list, expected a mapping by metric id"]
