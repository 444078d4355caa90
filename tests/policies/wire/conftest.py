"""A policy whose answers tell what it was asked, and servers that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

pytest.importorskip("msgpack")
pytest.importorskip("websockets")

from policies import Observation, PolicyOutput
from policies.wire.address import Listen
from policies.wire.listener import Listener
from policies.wire.server import PolicyService


class Teller:
    """Answers with logits of every bit pattern; ``wrong`` maps a step to what happens there."""

    name = "teller"
    signals: frozenset[str] = frozenset({"token_logits", "token_ids", "samples", "hidden"})

    def __init__(self, wrong: dict[int, Any] | None = None) -> None:
        self.wrong = wrong or {}
        self.instructions: list[str] = []
        self.seen: list[Observation] = []
        self.env: Any = None
        self.step = 0

    def bind(self, env: Any) -> None:
        self.env = env

    def reset(self, instruction: str) -> None:
        self.instructions.append(instruction)
        self.step = 0

    def act(self, observation: Observation) -> PolicyOutput:
        step, self.step = self.step, self.step + 1
        self.seen.append(observation)
        wrong = self.wrong.get(step)
        if isinstance(wrong, BaseException):
            raise wrong
        if callable(wrong):
            wrong()
        return answer_of(observation, step)


def answer_of(observation: Observation, step: int) -> PolicyOutput:
    """What a :class:`Teller` answers; its logits hold denormals, infinities and NaN too."""
    rng = np.random.default_rng(1000 * step + int(np.sum(observation.image) % 1000))
    logits = rng.integers(0, 2**32, (7, 33), dtype=np.uint32).view(np.float32)
    logits[0, :4] = [np.nan, np.inf, -np.inf, 1e-42]
    return PolicyOutput(
        action=rng.standard_normal(7) / 3.0,
        token_ids=rng.integers(0, 33, 7),
        token_logits=logits,
        action_token_range=(1, 33),
        samples=rng.standard_normal((4, 7)),
        hidden=rng.standard_normal(16).astype(np.float32),
        normalized_action=rng.uniform(-1, 1, 7),
        extra={"PI0-DV": float(rng.uniform()), "PI0-X": None},
    )


def observation(seed: int = 0, instruction: str = "put the carrot on the plate") -> Observation:
    rng = np.random.default_rng(seed)
    return Observation(
        image=rng.integers(0, 256, (24, 32, 3)).astype(np.uint8),
        instruction=instruction,
        tcp_position=rng.standard_normal(3),
        tcp_quaternion=rng.standard_normal(4),
        gripper=np.array([0.25]),
        joint_positions=rng.standard_normal(8),
    )


Serve = Callable[..., Listener]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers of a policy, or of what makes one, in threads."""
    with ExitStack() as stack:

        def start(
            policy: Any,
            listen: Listen = Listen(port=0),  # noqa: B008  frozen
            max_message_bytes: int = 2**24,
            **given: Any,
        ) -> Listener:
            load = policy if isinstance(policy, type) else lambda: policy
            service = PolicyService(load, **given)
            server = Listener(service, listen, max_message_bytes=max_message_bytes)
            stack.enter_context(server.background())
            return server

        yield start


@pytest.fixture
def teller() -> type[Teller]:
    return Teller


@pytest.fixture
def observe() -> Callable[..., Observation]:
    return observation


@pytest.fixture
def answer() -> Callable[[Observation, int], PolicyOutput]:
    return answer_of
