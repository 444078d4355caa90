from __future__ import annotations

import copy
import json
import pickle
import re
from typing import Any

import msgspec
import numpy as np
import pytest

from monitor import Alert, Belief, Decision, Evidence, Fault, Mode, Monitor, Step

RECORDS = (Step, Fault, Evidence, Belief, Alert, Decision)


@pytest.fixture
def decision() -> Decision:
    monitor = Monitor(action_low=-np.ones(7), action_high=np.ones(7))
    return monitor.update(Step(action=np.full(7, 9.0), goal_distance=0.2, token_logits=np.eye(7)))


@pytest.mark.parametrize("kind", RECORDS)
def test_every_field_is_documented_once_and_in_order(kind: Any) -> None:
    said = re.findall(r"^        (\w+): ", kind.__doc__, flags=re.MULTILINE)
    assert tuple(said) == kind.__struct_fields__


def test_records_are_frozen_and_copied_with_changes(decision: Decision) -> None:
    records: list[Any] = [Step(), decision, decision.evidence, decision.alerts[0]]
    for record in (*records, decision.faults[0], decision.belief):
        name = type(record).__struct_fields__[0]
        with pytest.raises(AttributeError):
            setattr(record, name, None)
    changed = msgspec.structs.replace(decision, mode=Mode.HALT)
    assert (changed.mode, changed.evidence) == (Mode.HALT, decision.evidence)
    with pytest.raises(TypeError, match="token_logit"):
        Step(token_logit=None)  # type: ignore[call-arg]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_records_pickle_and_copy(decision: Decision, protocol: int) -> None:
    copies = [pickle.loads(pickle.dumps(decision, protocol)), copy.deepcopy(decision)]
    for other in copies:
        assert other is not decision
        assert decision.action is not None
        assert other.action is not decision.action
        for name in Decision.__struct_fields__:
            np.testing.assert_equal(getattr(other, name), getattr(decision, name))
    step = Step(action=[1.0])
    assert copy.deepcopy(step).action == [1.0]
    assert step != copy.copy(step)  # arrays have no truth: a step is equal to itself alone
    assert {step: 1}[step] == 1


def test_evidence_is_exact_through_json() -> None:
    rng = np.random.default_rng(0)
    one = Evidence(
        action=tuple(rng.normal(size=7).tolist()),
        tcp_quaternion=(1.0, 0.0, 0.0, 0.0),
        goal_distance=1e-320,
        success=False,
        policy_error="",
        decode_ok=False,
        signals={"TB-E": 0.1 + 0.2, "EV": None},
        tokens={"TB-E": (1 / 3, 2 / 3)},
        logits_id=2**32 - 1,
        problems=(Fault(code="X", message="m", detail={"step": 3}),),
    )
    text = json.dumps(one.to_json(), allow_nan=False)
    assert Evidence.from_json(json.loads(text)) == one


def test_what_is_at_its_default_is_not_written() -> None:
    assert Evidence().to_json() == {}
    assert Evidence.from_json({}) == Evidence()
