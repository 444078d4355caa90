"""What travels between the remote policy and our server, and what is refused before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from envs.robot import ROBOTS
from monitor.errors import ConfigError
from policies import load_policy
from policies.wire.remote import RemotePolicy
from tests.policies.wire.peers import remote, same

# ---- what travels --------------------------------------------------------------------------


def test_every_signal_travels_bit_by_bit(
    serve: Any, teller: Any, observe: Any, answer: Any
) -> None:
    policy = teller()
    there = load_policy("remote", url=serve(policy).url)
    there.reset("stack the cubes")
    for step in range(3):
        assert same(there.act(observe(step)), answer(observe(step), step))
    assert policy.instructions == ["stack the cubes"]
    assert there.served == "teller"  # type: ignore[attr-defined]
    assert there.signals == teller.signals


def test_every_observation_travels_bit_by_bit(serve: Any, teller: Any, observe: Any) -> None:
    policy = teller()
    there = remote(serve(policy).url)
    there.reset("")
    there.act(observe(3))
    (got,), want = policy.seen, observe(3)
    assert got.image.tobytes() == want.image.tobytes()
    assert got.instruction == want.instruction
    assert got.gripper == want.gripper
    for name in ("tcp_position", "tcp_quaternion", "joint_positions"):
        assert getattr(got, name).tobytes() == getattr(want, name).tobytes()


def test_only_the_signals_that_are_asked_for_travel(serve: Any, teller: Any, observe: Any) -> None:
    there = remote(serve(teller()).url, signals=["hidden"])
    there.reset("x")
    output = there.act(observe())
    assert output.hidden is not None
    assert output.token_logits is None
    assert output.samples is None
    assert there.signals == {"hidden"}


def test_the_environment_travels_as_far_as_a_policy_needs(
    serve: Any, teller: Any, observe: Any
) -> None:
    policy = teller()
    space = SimpleNamespace(low=np.full(7, -0.1, np.float32), high=np.full(7, 0.1, np.float32))
    env = SimpleNamespace(action_space=space, control_dt_s=0.2, robot=ROBOTS["widowx"])
    there = remote(serve(policy).url)
    there.bind(env)
    there.reset("x")
    assert policy.env.action_space.low.tobytes() == space.low.tobytes()
    assert policy.env.unwrapped.robot is ROBOTS["widowx"]
    assert policy.env.control_dt_s == 0.2
    with pytest.raises(AttributeError, match="'objects', which does not travel"):
        policy.env.objects  # noqa: B018


def test_a_chunk_travels_as_openpi_actions(serve: Any, teller: Any, observe: Any) -> None:
    class Chunked(teller):  # type: ignore[misc]
        def act(self, observation: Any) -> Any:
            output = super().act(observation)
            chunk = np.vstack([output.action, np.ones((3, 7))])
            return SimpleNamespace(action=output.action, chunk=chunk, decode_ok=True)

    there = remote(serve(Chunked()).url)
    there.reset("x")
    output = there.act(observe())
    assert output.chunk is not None
    assert output.chunk.shape == (4, 7)
    assert output.action.tobytes() == output.chunk[0].tobytes()


def test_torch_logits_arrive_as_numpy(serve: Any, teller: Any, observe: Any) -> None:
    torch = pytest.importorskip("torch")
    logits = torch.randn(7, 9).bfloat16()

    class Torch(teller):  # type: ignore[misc]
        def act(self, observation: Any) -> Any:
            return SimpleNamespace(action=torch.zeros(7), token_logits=logits)

    there = remote(serve(Torch()).url)
    there.reset("x")
    got = there.act(observe()).token_logits
    assert got.dtype == np.float32
    assert (torch.from_numpy(got) == logits.float()).all()


# ---- what is told at the start ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ((0.03, 0.04, 0.05), (0.03, 0.04, 0.05)),
        (None, None),
        ((0.03, 0.04), None),
        ((0.03, -1.0, 0.05), None),
        ((0.03, float("nan"), 0.05), None),
    ],
)
def test_the_translation_q99_m_travels(serve: Any, teller: Any, told: Any, expected: Any) -> None:
    policy = teller()
    policy.translation_q99_m = told
    assert remote(serve(policy).url).translation_q99_m == expected


# ---- arguments -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"url": "http://127.0.0.1:8000"},
        {"url": "ws://me:secret@127.0.0.1:8000"},
        {"url": "ws://:8000"},
        {"url": "ws://127.0.0.1:99999"},
        {"signals": ["logits"]},
        {"keys": {"picture": "x"}},
        {"keys": {"layout": "joint_positions,gripper"}},
        {"keys": {"layout": "gripper,gripper"}},
        {"keys": {"layout": "torque"}},
        {"keys": {"image": ""}},
        {"timeout_s": 0.0},
        {"api_key_env": "NO_SUCH_VARIABLE"},
    ],
    ids=repr,
)
def test_wrong_arguments_are_refused_before_anything_is_sent(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        RemotePolicy(**{"url": "ws://127.0.0.1:1", **given})
