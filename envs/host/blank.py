"""An environment without physics: images of a given size, for timing what carries them."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from envs.robot import ROBOTS

__all__ = ["BlankEnv"]


class BlankEnv:
    """Gives a fresh image at every step, and nothing happens in it.

    It needs numpy only, so that any Python can hold it.

    Args:
        image_size: height and width of the image, pixels.
        horizon_steps: steps per episode.
    """

    control_dt_s = 0.2
    disturbances: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {"render_modes": ["rgb_array"]}
    render_mode = "rgb_array"
    robot = ROBOTS["widowx"]
    scene_count = None
    spec = None

    def __init__(self, *, image_size: tuple[int, int] = (480, 640), horizon_steps: int = 80):
        self.horizon_steps = horizon_steps
        high = np.array([0.05, 0.05, 0.05, 0.25, 0.25, 0.25, 1.0], dtype=np.float32)
        self.action_space = SimpleNamespace(low=-high, high=high, dtype=high.dtype)
        self._shape = (*image_size, 3)
        self._scene = 0
        self._elapsed = 0

    @property
    def unwrapped(self) -> BlankEnv:
        """Itself."""
        return self

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode of ``options["scene"]``."""
        self._scene, self._elapsed = int((options or {}).get("scene", 0)), 0
        return self._observe()

    def step(self, action: Any) -> Any:
        """Count one step."""
        self._elapsed += 1
        ended = self._elapsed >= self.horizon_steps
        observation, info = self._observe()
        return observation, 0.0, False, ended, info

    def render(self) -> Any:
        """The image."""
        return np.full(self._shape, self._elapsed % 256, dtype=np.uint8)

    def close(self) -> None:
        """Nothing to free."""

    def _observe(self) -> Any:
        observation = {
            "image": self.render(),
            "tcp_position": np.array([0.3, 0.0, 0.2]),
            "tcp_quaternion": np.array([1.0, 0.0, 0.0, 0.0]),
            "gripper": np.array([1.0]),
            "joint_positions": np.zeros(8),
        }
        info = {
            "instruction": "wait",
            "task": "blank",
            "scene": self._scene,
            "disturbance": None,
            "elapsed_steps": self._elapsed,
            "success": False,
            "goal_distance": 0.3,
            "object_poses": {"nothing": np.zeros(7)},
        }
        return observation, info
