"""What the contract of :mod:`envs.base` gives and takes, as gymnasium says it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from monitor.errors import ConfigError

__all__ = ["observation_space", "read_action"]


def observation_space(image_size: tuple[int, int], joint_count: int) -> gym.spaces.Dict:
    """The space of :class:`envs.base.Observation`.

    Args:
        image_size: height and width of the image.
        joint_count: length of ``joint_positions``.
    """

    def numbers(count: int, low: float = -np.inf, high: float = np.inf) -> gym.spaces.Box:
        return gym.spaces.Box(low, high, (count,), np.float64)

    return gym.spaces.Dict(
        {
            "image": gym.spaces.Box(0, 255, (*image_size, 3), np.uint8),
            "tcp_position": numbers(3),
            # A unit quaternion in single precision may be an ulp too long.
            "tcp_quaternion": numbers(4, -1.001, 1.001),
            "gripper": numbers(1, 0.0, 1.0),
            "joint_positions": numbers(joint_count),
        }
    )


def read_action(action: Any) -> NDArray[np.float64]:
    """An action as the simulators take it, a copy of shape ``(7,)``.

    Raises:
        ConfigError: (a ValueError) if it is not 7 finite numbers.

    >>> read_action([0, 0, 0.01, 0, 0, 0, 1]).tolist()
    [0.0, 0.0, 0.01, 0.0, 0.0, 0.0, 1.0]
    """
    wanted = np.array(action, dtype=np.float64)
    if wanted.shape != (7,) or not np.isfinite(wanted).all():
        msg = f"action must be 7 finite numbers, got {np.asarray(action)!r}"
        raise ConfigError(msg)
    return wanted
