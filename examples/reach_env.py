"""An environment: a tool without a body that is to reach a point.

vlawatch run --env reach_env:ReachEnv --policy down_policy:DownPolicy --scenes 0:3
"""

from typing import Any

import gymnasium as gym
import numpy as np


class ReachEnv(gym.Env[Any, Any]):
    """Solved within 3 cm of the scene's goal; actions are translations in metres and a gripper."""

    control_dt_s = 0.2
    horizon_steps = 20

    def __init__(self) -> None:
        high = np.array([0.05] * 3 + [0.25] * 3 + [1.0], dtype=np.float32)
        self.action_space = gym.spaces.Box(-high, high, dtype=np.float32)
        self.observation_space = gym.spaces.Dict({})

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin the episode of ``options["scene"]``."""
        super().reset(seed=seed)
        self._scene = (options or {}).get("scene", 0)
        offset = np.random.default_rng(self._scene).uniform(-0.02, 0.02, 3)
        self._goal = np.array([0.3, 0.0, 0.2]) + offset
        self._tool, self._steps = np.array([0.3, 0.0, 0.3]), 0
        return self._observe()

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Move the tool by the action."""
        low, high = self.action_space.low, self.action_space.high
        self._tool = self._tool + np.clip(action, low, high)[:3]
        self._steps += 1
        observation, info = self._observe()
        return observation, 0.0, False, self._steps >= self.horizon_steps, info

    def _observe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        distance = float(np.linalg.norm(self._tool - self._goal))
        rng = np.random.default_rng([self._scene, self._steps])
        observation = {
            "image": rng.integers(0, 256, (24, 24, 3), dtype=np.uint8),
            "tcp_position": self._tool.copy(),
            "tcp_quaternion": np.array([1.0, 0.0, 0.0, 0.0]),
            "gripper": np.array([1.0]),
        }
        info = {
            "instruction": "reach the point",
            "scene": self._scene,
            "goal_distance": distance,
            "success": distance < 0.03,
        }
        return observation, info
