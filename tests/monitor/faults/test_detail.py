"""Every shipped fault says its step, its field and its value, in words of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from monitor import Fault, Monitor, Step
from monitor.faults import RESPONSES

Make = Callable[..., Monitor]
BAD: list[Any] = ["x", np.zeros((2, 3, 4)), np.full(7, np.nan), np.nan, -1.0, 1e9, object(), {}]
FIELDS = (
    "action", "token_logits", "token_ids", "tcp_position", "tcp_quaternion", "goal_distance",
    "samples", "chunk", "image", "gripper", "latency_s", "extra",
)  # fmt: skip


def streams() -> Iterator[list[Step]]:
    """Short episodes that between them show every fault."""
    rng = np.random.default_rng(0)
    rest = np.zeros(7)
    base = Step(action=rest, token_logits=np.zeros((7, 9)))
    yield from ([replace(base, **{name: value})] for name in FIELDS for value in BAD)
    nothing = np.full((2, 7), np.nan)
    yield [Step(action=rest, samples=nothing, chunk=nothing), Step(action=rest, samples=[rest] * 3)]
    yield [Step(action=rest, token_logits=np.full((7, 9), np.nan)), Step(action=rest + 9.0)]
    yield [Step(action=rest, tcp_position=[np.inf, 0.0, 0.0], tcp_quaternion=[2.0, 0.0, 0.0, 0.0])]
    yield [Step(), Step(policy_error="boom")]
    yield [Step(policy_error="STALE_ACTION: old")]
    yield [Step(action=rest, env_error="boom"), Step(action=rest, decode_ok=False)]
    yield [Step(action=rest, image=np.zeros((9, 9, 3), np.uint8))]
    picture = rng.integers(0, 256, (9, 9, 3), dtype=np.uint8)
    yield [Step(action=rest, image=picture, tcp_position=[0.01 * t, 0.0, 0.0]) for t in range(12)]
    pictures = rng.integers(0, 256, (12, 9, 9, 3), dtype=np.uint8)
    yield [Step(action=rest, token_logits=np.eye(7, 9), image=one) for one in pictures]
    yield [Step(action=rest, latency_s=9.0, tcp_position=[0.0] * 3)] * 30
    close = np.r_[np.zeros(6), -1.0]
    yield [Step(action=close, gripper=1.0, tcp_position=[0.01 * t, 0.0, 0.0]) for t in range(30)]
    yield [Step(action=rest, success=t == 2) for t in range(30)]
    maybe: Any = "perhaps"
    yield [Step(action=rest, success=maybe, latency_s=-1.0)]
    yield [Step(action=rng.uniform(-1.0, 1.0, 7)) for _ in range(12)]
    yield [Step(action=rest, token_logits=np.eye(7, 9) * 50.0, action_token_range=(7, 9))]


@pytest.fixture
def seen(make_monitor: Make) -> dict[str, Fault]:
    """One fault of each code."""
    found: dict[str, Fault] = {}
    for steps in streams():
        monitor = make_monitor(controller={"enforce": False})
        for step in steps:
            found.update({fault.code: fault for fault in monitor.update(step).faults})
    return found


def test_every_fault_has_step_field_and_value(seen: dict[str, Fault]) -> None:
    for code, fault in seen.items():
        assert {"step", "field", "value"} <= fault.detail.keys(), code
        assert isinstance(fault.detail["field"], str), code
        assert fault.message.startswith(f"step {fault.detail['step']}: "), code
        json.dumps(dict(fault.detail), allow_nan=False)
    # Of what is shipped, only a plugin's own failure does not show here.
    assert RESPONSES.keys() - seen.keys() == {
        "DETECTOR_ERROR",
        "RECOVERY_ERROR",
        "SCORER_ERROR",
    }


def test_what_was_given_is_named_and_not_called_none(seen: dict[str, Fault]) -> None:
    shapes = {code: one for code, one in seen.items() if code.endswith(("_SHAPE", "_FORMAT"))}
    assert len(shapes) >= 8
    for code, fault in shapes.items():
        assert " is None" not in fault.message, code
