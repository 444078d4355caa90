"""Plugins and data that break their promises never make the monitor break its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from monitor import Mode, Monitor, MonitorConfig, Step, VectorMonitor

LIMITS: dict[str, Any] = {"action_low": [-1.0] * 7, "action_high": [1.0] * 7}


class Strings:
    """A detector whose faults are not faults."""

    def __init__(self, setup: Any) -> None: ...

    def reset(self) -> None: ...

    def check(self, context: Any) -> list[Any]:
        return ["oops"]


class Silent(Exception):  # noqa: N818
    def __repr__(self) -> str:
        raise RuntimeError


class Nameless(Strings):
    """A detector whose error cannot be described."""

    def check(self, context: Any) -> list[Any]:
        raise Silent


class Scalar:
    """A scorer that gives one number for all robots, and cannot forget."""

    signals = ("TB-E",)

    def __init__(self, setup: Any, tables: Any, n: int) -> None: ...

    def update(self, values: Any, succeeded: Any) -> Any:
        return 0.2

    def reset(self, which: Any = None) -> None: ...

    def forget_motion(self, which: Any) -> None: ...

    def explain(self, robot: int) -> dict[str, float]:
        return {}


class Forgetless(Scalar):
    def update(self, values: Any, succeeded: Any) -> Any:
        return np.full(len(values), 0.5)

    def forget_motion(self, which: Any) -> None:
        raise ValueError(which)


class Blind:
    """A recovery that cannot observe."""

    def __init__(self, setup: Any) -> None: ...

    def reset(self) -> None: ...

    def observe(self, context: Any, well: bool) -> None:
        raise ValueError(context)

    def act(self, context: Any) -> list[float]:
        return [0.0] * 7


def both(**sections: Any) -> tuple[Monitor, VectorMonitor]:
    config = MonitorConfig.model_validate(sections)
    return Monitor(config, **LIMITS), VectorMonitor(config, num_envs=2, **LIMITS)


@pytest.mark.parametrize("detector", ["Strings", "Nameless"])
def test_a_detector_that_gives_no_faults_is_one(detector: str) -> None:
    one, two = both(faults={"plugins": [f"{__name__}:{detector}"]})
    (found,) = one.update(Step(action=np.zeros(7))).faults
    assert found.code == "DETECTOR_ERROR"
    assert two.update(Step(action=np.zeros((2, 7)))).faults["DETECTOR_ERROR"].all()


def test_a_scorer_must_give_one_score_per_robot() -> None:
    one, two = both(score={"scorer": f"{__name__}:Scalar"})
    decision, batch = (
        one.update(Step(action=np.zeros(7))),
        two.update(Step(action=np.zeros((2, 7)))),
    )
    assert decision.score is None
    assert np.isnan(batch.score).all()
    assert [fault.code for fault in decision.faults] == ["SCORER_ERROR"]
    assert batch.faults["SCORER_ERROR"].all()


def test_a_scorer_that_cannot_forget_does_not_end_the_recovery() -> None:
    one, two = both(score={"scorer": f"{__name__}:Forgetless"})
    codes, masks = set[str](), 0
    for _ in range(12):
        codes |= {fault.code for fault in one.update(Step(action=np.zeros(7))).faults}
        masks += "SCORER_ERROR" in two.update(Step(action=np.zeros((2, 7)))).faults
    assert "SCORER_ERROR" in codes
    assert masks


def test_a_recovery_that_cannot_observe_halts_once_and_a_watcher_never() -> None:
    name = f"{__name__}:Blind"
    one, two = both(recovery={"behavior": name})
    step = Step(action=np.zeros(7))
    decisions = [one.update(step) for _ in range(3)]
    assert [decision.mode for decision in decisions] == [Mode.HALT] * 3
    assert [len(decision.alerts) for decision in decisions] == [2, 0, 0]
    batch = two.update(Step(action=np.zeros((2, 7))))
    two.reset([0])
    assert batch.faults["RECOVERY_ERROR"].tolist() == [True, True], "what is handed out stays"
    assert not two.update(Step(action=np.zeros((2, 7)))).sendable.any()
    watching, _ = both(recovery={"behavior": name}, controller={"enforce": False})
    assert watching.update(step).action is not None


def test_masked_numbers_are_unknown() -> None:
    one, _ = both()
    masked = np.ma.masked_array([0.5] * 7, mask=[True] + [False] * 6)
    assert [fault.code for fault in one.update(Step(action=masked)).faults] == ["NONFINITE_ACTION"]


def test_a_ragged_verdict_of_a_batch_of_one_is_a_fault() -> None:
    monitor = VectorMonitor(num_envs=1, **LIMITS)
    decision = monitor.update(Step(action=np.zeros((1, 7)), success=[[1], [1, 2]]))
    assert decision.faults["SUCCESS_SHAPE"].all()
