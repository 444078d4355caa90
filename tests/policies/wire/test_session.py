from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("msgpack")

from policies import Observation, PolicyOutput
from policies.wire.codec import decode, encode
from policies.wire.keys import KeyMap
from policies.wire.session import Session

KEYS = st.sampled_from(
    [
        "prompt",
        "observation/image",
        "observation",
        "image",
        "state",
        "instruction",
        "env",
        "action_low",
        "action_high",
        "robot",
        "vlawatch/seq",
        "vlawatch/reset",
        "vlawatch/want",
        "vlawatch/tcp_position",
        "vlawatch/gripper",
        "vlawatch/joint_positions",
    ]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.sampled_from(["token_logits", "action", "widowx"]),
    st.sampled_from(
        [
            np.zeros((4, 4, 3), np.uint8),
            np.zeros((3, 4, 4), np.uint8),
            np.zeros((3, 3, 3), np.uint8),
            np.zeros((0, 0, 3), np.uint8),
            np.zeros(7),
            np.full(3, np.nan),
            np.zeros((2, 2)),
            np.array("x"),
            np.array([], np.float32),
        ]
    ),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


class Looker:
    """Uses whatever it is given, as a real policy would."""

    name = "looker"
    signals: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.high = np.ones(7)

    def bind(self, env: Any) -> None:
        self.high = np.asarray(env.action_space.high, dtype=np.float64)
        assert env.robot.name == "widowx"

    def reset(self, instruction: str) -> None:
        assert instruction == instruction.strip(), "blank around the instruction"

    def act(self, observation: Observation) -> PolicyOutput:
        return PolicyOutput(action=self.high * observation.image.mean(), token_logits=self.high)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
@settings(max_examples=150, deadline=None)
def test_any_message_gets_an_answer(message: dict[str, Any]) -> None:
    session = Session(Looker(), KeyMap.of({"layout": "tcp_position,joint_positions"}))
    for _ in range(2):  # what the first leaves behind must not break the second
        answer = session.answer(encode(message))
        if isinstance(answer.frame, bytes):
            reply = decode(answer.frame)
            assert {"actions", "vlawatch/error", "vlawatch/reset"} & reply.keys()
            assert reply.get("vlawatch/seq") == message.get("vlawatch/seq")
        else:
            assert answer.frame
            assert answer.close is not None


@given(st.binary(max_size=60) | st.text(max_size=20))
@settings(max_examples=200, deadline=None)
def test_any_frame_gets_an_answer(frame: bytes | str) -> None:
    answer = Session(Looker(), KeyMap()).answer(frame)
    assert isinstance(answer.frame, str)
    assert answer.close in (1007, 1011)
