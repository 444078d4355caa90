"""A metric and a fault detector of another package, found by entry point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from monitor import ConfigError, Mode, Monitor, Step


@pytest.mark.usefixtures("installed")
def test_its_metric_feeds_its_detector_a_rule_and_a_peak(
    make_monitor: Callable[..., Monitor],
) -> None:
    rule = {"name": "loud", "of": [{"metric": "LOUD", "above": 5}], "respond": "halt"}
    monitor = make_monitor(
        metrics={"plugins": ("loud",), "peaks": ("LOUD",)},
        faults={"plugins": ("loud",), "respond": {"TOO_LOUD": "recover"}},
        rules=[rule],
    )
    zero = np.zeros(7)
    quiet = monitor.update(Step(action=zero, hidden=np.ones(3)))
    assert (quiet.metrics["LOUD"], quiet.metrics["LOUD-bad"]) == (1.0, None)
    assert not quiet.faults
    loud = monitor.update(Step(action=zero, hidden=np.ones(3) * 3))
    assert [f.code for f in loud.faults] == ["TOO_LOUD"]
    assert loud.mode is Mode.RECOVER
    broken = monitor.update(Step(action=zero))
    assert "METRIC_ERROR" in {f.code for f in broken.faults}
    assert (broken.metrics["LOUD"], broken.metrics["LOUD_peak"]) == (None, 3.0)
    assert monitor.update(Step(action=zero, hidden=np.ones(3) * 9)).mode is Mode.HALT


@pytest.mark.usefixtures("installed")
def test_a_plugins_values_replay(make_monitor: Callable[..., Monitor]) -> None:
    live, again = (make_monitor(metrics={"plugins": ("loud",)}) for _ in range(2))
    decision = live.update(Step(action=np.zeros(7), hidden=np.ones(3)))
    assert again.replay(decision.evidence).metrics == decision.metrics


@pytest.mark.usefixtures("installed")
def test_a_detector_that_raises_is_a_fault_itself(make_monitor: Callable[..., Monitor]) -> None:
    monitor = make_monitor(metrics={"plugins": ("loud",)}, faults={"plugins": ("loud",)})
    decision = monitor.update(Step(action=np.zeros(7), hidden=np.full(3, 4.0)))
    assert [f.code for f in decision.faults] == ["DETECTOR_ERROR"]
    assert "four" in decision.faults[0].message


def test_a_name_that_nobody_offers_is_refused(make_monitor: Callable[..., Monitor]) -> None:
    with pytest.raises(ConfigError, match="metric plugin"):
        make_monitor(metrics={"plugins": ("nobody",)})
