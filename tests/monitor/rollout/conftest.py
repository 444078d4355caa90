"""A small deterministic environment with the contract of the real ones, and policies for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import pytest

from monitor.pipeline import Monitor
from monitor.rollout import EpisodeResult, EpisodeStart, StepRecord
from policies import Observation, PolicyOutput

HIGH = np.array([0.05, 0.05, 0.05, 0.25, 0.25, 0.25, 1.0], dtype=np.float32)


class FakeEnv(gymnasium.Env[Any, Any]):
    """A tool that moves by its action toward a point; solved within 3 cm of it.

    ``broken`` maps (scene, step) to what is raised there; step -1 is the reset.
    """

    control_dt_s = 0.2

    def __init__(self, horizon_steps: int = 30, broken: dict[Any, BaseException] | None = None):
        self.action_space = gymnasium.spaces.Box(-HIGH, HIGH, dtype=np.float32)
        self.observation_space = gymnasium.spaces.Dict({})
        self.horizon_steps = horizon_steps
        self.broken = broken or {}
        self.received: list[np.ndarray[Any, Any]] = []
        self.closed = False
        self.scene = -1
        self.elapsed = 0
        self.goal = np.zeros(3)
        self.tool = np.zeros(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        given = dict(options or {})
        self.scene = given.pop("scene", 0)
        self._raise(-1)
        self.elapsed = 0
        rng = np.random.default_rng(self.scene)
        self.goal = np.array([0.3, 0.0, 0.1]) + 0.1 * rng.uniform(-1, 1, 3)
        self.tool = np.array([0.3, 0.0, 0.4])
        return self._seen()

    def step(self, action: Any) -> Any:
        self.received.append(np.array(action))
        if not np.isfinite(action).all():
            msg = f"not finite: {action}"
            raise ValueError(msg)
        self._raise(self.elapsed)
        self.tool = self.tool + np.clip(action, -HIGH, HIGH)[:3]
        self.elapsed += 1
        obs, info = self._seen()
        return obs, 0.0, False, self.elapsed >= self.horizon_steps, info

    def render(self) -> Any:
        return np.full((64, 64, 3), 7 * self.elapsed % 255, dtype=np.uint8)

    def close(self) -> None:
        self.closed = True

    def _raise(self, step: int) -> None:
        if (self.scene, step) in self.broken:
            raise self.broken[self.scene, step]

    def _seen(self) -> Any:
        rng = np.random.default_rng(1000 * self.scene + self.elapsed)
        distance = float(np.linalg.norm(self.tool - self.goal))
        obs = {
            "image": rng.integers(0, 256, (24, 24, 3)).astype(np.uint8),
            "tcp_position": self.tool.copy(),
            "tcp_quaternion": np.array([1.0, 0.0, 0.0, 0.0]),
            "gripper": np.array([1.0]),
            "joint_positions": np.zeros(8),
        }
        info = {
            "instruction": f"reach goal {self.scene}",
            "task": "reach",
            "scene": self.scene,
            "success": distance < 0.03,
            "goal_distance": distance,
            "elapsed_steps": self.elapsed,
            "object_poses": {"goal": np.zeros(7)},
        }
        return obs, info


class Reacher:
    """Moves the tool to the goal; ``wrong`` maps a step to what is returned or raised there."""

    name = "reacher"
    signals: frozenset[str] = frozenset({"token_logits", "token_ids"})

    def __init__(self, wrong: dict[int, Any] | None = None) -> None:
        self.wrong = wrong or {}
        self.bound: Any = None
        self.instructions: list[str] = []
        self.step = 0

    def bind(self, env: Any) -> None:
        self.bound = env

    def reset(self, instruction: str) -> None:
        self.instructions.append(instruction)
        self.step = 0

    def act(self, observation: Observation) -> PolicyOutput:
        step, self.step = self.step, self.step + 1
        wrong = self.wrong.get(step)
        if isinstance(wrong, BaseException):
            raise wrong
        env = self.bound
        rng = np.random.default_rng(1000 * env.scene + step)
        move = np.clip(0.3 * (env.goal - env.tool), -0.05, 0.05) + 1e-4 * rng.standard_normal(3)
        logits = 10.0 * np.eye(7, 16) + rng.standard_normal((7, 16))
        output = PolicyOutput(
            action=np.concatenate([move, np.zeros(3), [1.0]]),
            token_logits=logits,
            token_ids=logits.argmax(axis=1),
        )
        if callable(wrong):
            return wrong(output)  # type: ignore[no-any-return]
        return output


@dataclass
class Watcher:
    """Keeps everything it is notified of."""

    starts: list[EpisodeStart] = field(default_factory=list)
    steps: list[StepRecord] = field(default_factory=list)
    ends: list[EpisodeResult] = field(default_factory=list)

    def on_start(self, start: EpisodeStart) -> None:
        self.starts.append(start)

    def on_step(self, record: StepRecord) -> None:
        self.steps.append(record)

    def on_end(self, result: EpisodeResult) -> None:
        self.ends.append(result)


@pytest.fixture
def fake_env() -> Callable[..., FakeEnv]:
    return FakeEnv


@pytest.fixture
def reacher() -> Callable[..., Reacher]:
    return Reacher


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


@pytest.fixture
def monitor() -> Monitor:
    return Monitor(action_low=-HIGH, action_high=HIGH)
