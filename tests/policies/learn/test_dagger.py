from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from policies import Observation, PolicyOutput
from policies.learn.collect import STEPS_AFTER_SUCCESS
from policies.learn.dagger import STALL_STEPS, TAKEOVER_STEPS, StallWatch, aggregate


class Track:
    """One axis; success beyond 0.2 m."""

    horizon_steps = 80

    def __init__(self) -> None:
        self.unwrapped = self
        self.swaps: list[bool] = []
        self.executed: list[float] = []

    def reset(self, *, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        self.swaps.append(options["swap_instruction"])
        self._x, self._step = 0.0, 0
        return self._see()

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.executed.append(float(action[0]))
        self._x += float(action[0])
        self._step += 1
        obs, info = self._see()
        return obs, 0.0, False, self._step >= self.horizon_steps, info

    def _see(self) -> tuple[dict[str, Any], dict[str, Any]]:
        obs = {"image": np.zeros((4, 4, 3), np.uint8), "tcp_position": np.array([self._x, 0, 0])}
        return obs, {"instruction": "go", "success": self._x > 0.2}


class Labels:
    """Stands for the recorder: counts frames, answers with the expert's action."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, int]] = []

    def add(self, env: Any, image: Any, episode: int, step: int) -> Any:
        self.frames.append((episode, step))
        return np.array([0.03, 0, 0, 0, 0, 0, 1.0])


class Lazy:
    name = "lazy"
    signals: frozenset[str] = frozenset()

    def reset(self, instruction: str) -> None:
        self.instruction = instruction

    def act(self, observation: Observation) -> PolicyOutput:
        return PolicyOutput(action=np.array([0.0, 0, 0, 0, 0, 0, 1.0]))


def test_expert_takes_over_for_a_few_steps_when_the_tool_stalls() -> None:
    watch = StallWatch()
    taken = [watch.update(np.zeros(3)) for _ in range(STALL_STEPS + TAKEOVER_STEPS)]
    assert taken == [False] * (STALL_STEPS - 1) + [True] * TAKEOVER_STEPS + [False]
    moving = StallWatch()
    assert not any(moving.update(np.array([0.02 * i, 0, 0])) for i in range(30))


def test_every_frame_is_labelled_and_a_stalled_learner_still_gets_on() -> None:
    env, labels = Track(), Labels()
    good = aggregate(env, Lazy(), range(10**6, 10**6 + 4), labels, seed=0)  # type: ignore[arg-type]
    assert good == 4
    assert env.swaps == [False, True, False, True]
    assert len(labels.frames) == len(env.executed)
    assert len(set(labels.frames)) == len(labels.frames)
    assert len(env.executed) < 4 * env.horizon_steps


def test_episode_ends_some_steps_after_success() -> None:
    env, labels = Track(), Labels()
    aggregate(env, Lazy(), [1_000_000], labels, seed=3)  # type: ignore[arg-type]
    position = np.cumsum(env.executed)
    assert (position > 0.2).sum() >= STEPS_AFTER_SUCCESS - 1
