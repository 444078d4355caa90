"""A small world in which some episodes fail, and run folders made in it by the real loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from monitor import Calibration, Monitor, MonitorConfig
from monitor.rollout import EpisodeSpec, RunFiles, run_episodes, run_header
from monitor.study.summary import build_summary
from policies import Observation, PolicyOutput

HIGH = np.array([0.05, 0.05, 0.05, 0.25, 0.25, 0.25, 1.0], dtype=np.float32)
STEPS = 24


class World(gymnasium.Env[Any, Any]):
    """A tool and a goal; a disturbance moves the goal out of reach."""

    control_dt_s = 0.2

    def __init__(self) -> None:
        self.action_space = gymnasium.spaces.Box(-HIGH, HIGH, dtype=np.float32)
        self.observation_space = gymnasium.spaces.Dict({})
        self.scene, self.elapsed, self.lost = 0, 0, False
        self.tool = self.goal = np.zeros(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        given = options or {}
        self.scene, self.elapsed = given.get("scene", 0), 0
        self.lost = given.get("disturbance") is not None or self.scene % 5 == 4
        if self.scene == 13:
            msg = "the simulator is gone"
            raise RuntimeError(msg)
        rng = np.random.default_rng(self.scene)
        self.goal = np.array([0.3, 0.0, 0.1]) + 0.1 * rng.uniform(-1, 1, 3)
        self.tool = np.array([0.3, 0.0, 0.4])
        return self._seen()

    def step(self, action: Any) -> Any:
        self.tool = self.tool + np.clip(action, -HIGH, HIGH)[:3]
        self.elapsed += 1
        obs, info = self._seen()
        return obs, 0.0, False, self.elapsed >= STEPS, info

    def _seen(self) -> Any:
        distance = float(np.linalg.norm(self.tool - self.goal))
        rng = np.random.default_rng(1000 * self.scene + self.elapsed)
        obs = {
            "image": rng.integers(0, 256, (8, 8, 3)).astype(np.uint8),
            "tcp_position": self.tool.copy(),
            "tcp_quaternion": np.array([1.0, 0.0, 0.0, 0.0]),
            "gripper": np.array([1.0]),
        }
        return obs, {
            "instruction": "reach the goal",
            "task": "reach",
            "success": distance < 0.05,
            "goal_distance": distance,
        }


class Reacher:
    """Goes to the goal, surely; where it is lost it wavers, unsure."""

    name = "reacher"
    signals: frozenset[str] = frozenset({"token_logits", "token_ids"})

    def bind(self, env: Any) -> None:
        self.env = env

    def reset(self, instruction: str) -> None:
        del instruction

    def act(self, observation: Observation) -> PolicyOutput:
        del observation
        env = self.env
        rng = np.random.default_rng([7, env.scene, env.elapsed])
        move = 0.25 * (env.goal - env.tool) + 1e-3 * rng.standard_normal(3)
        if env.lost and env.elapsed > 2:
            move = 0.03 * rng.standard_normal(3)
        sure = 2.0 if env.lost else 10.0 + rng.standard_normal()
        logits = sure * np.eye(7, 16) + rng.standard_normal((7, 16))
        return PolicyOutput(
            action=np.concatenate([np.clip(move, -0.05, 0.05), np.zeros(3), [1.0]]),
            token_logits=logits,
            token_ids=logits.argmax(axis=1),
        )


def record(
    out: Path,
    scenes: range,
    *,
    calibration: Calibration | None = None,
    enforce: bool = False,
    policy_name: str = "reacher",
    disturbance: str | None = None,
) -> Path:
    """Write a run folder."""
    config = MonitorConfig.model_validate({"controller": {"enforce": enforce}})
    env = World()
    monitor = Monitor(
        config,
        action_low=-HIGH,
        action_high=HIGH,
        calibration=calibration,
    )
    options = {} if disturbance is None else {"disturbance": disturbance}
    specs = [EpisodeSpec(scene=scene, seed=0, options=options) for scene in scenes]
    header = run_header(
        env_name="world", env=env, policy_name=policy_name, monitor=monitor, specs=specs
    )
    files = RunFiles(folder=out, header=header, summarise=build_summary)
    run_episodes(env, Reacher(), monitor, specs, files=files)
    return out


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """32 watched episodes: some fail, scene 13 has an error."""
    return record(tmp_path_factory.mktemp("study") / "watched", range(32))


@pytest.fixture(scope="session")
def enforced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10 episodes in which the monitor steps in."""
    return record(tmp_path_factory.mktemp("study") / "enforced", range(10), enforce=True)


@pytest.fixture(name="record")
def _record() -> Callable[..., Path]:
    return record


@pytest.fixture(scope="session")
def world() -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Makers of environment and policy, as a study takes them."""
    return World, Reacher
