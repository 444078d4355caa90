"""The robot's state as the datasets of the SimplerEnv evaluations write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from policies.base import FloatArray, Observation

__all__ = ["BY_ROBOT", "STATES", "StateReader"]

StateReader = Callable[[Observation], FloatArray | None]

_TOP_DOWN: Final = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
"""Orientation that Bridge data counts from: the tool pointing down."""


def bridge_state(observation: Observation) -> FloatArray | None:
    """Bridge: position [m], roll, pitch, yaw from pointing down [rad], 0, opening; ``(8,)``."""
    pose = _pose(observation)
    if pose is None:
        return None
    position, quaternion, opening = pose
    angles = _roll_pitch_yaw(_matrix(quaternion) @ _TOP_DOWN.T)
    return np.concatenate([position, angles, [0.0, opening]])


def fractal_state(observation: Observation) -> FloatArray | None:
    """Fractal (Google Robot): position [m], quaternion x, y, z, w, closure; ``(8,)``."""
    pose = _pose(observation)
    if pose is None:
        return None
    position, quaternion, opening = pose
    return np.concatenate([position, np.roll(quaternion, -1), [1.0 - opening]])


def joint_state(observation: Observation) -> FloatArray | None:
    """Joints as the environment gives them, then the opening where it is known."""
    if observation.joint_positions is None:
        return None
    joints = np.asarray(observation.joint_positions, dtype=np.float64)
    if observation.gripper is None:
        return joints.copy()
    return np.concatenate([joints, np.ravel(observation.gripper)])


STATES: Final[Mapping[str, StateReader]] = MappingProxyType(
    {"bridge": bridge_state, "fractal": fractal_state, "joints": joint_state}
)
"""Layouts by name; None where the observation lacks what the layout needs."""

BY_ROBOT: Final[Mapping[str, str]] = MappingProxyType(
    {"widowx": "bridge", "google_robot": "fractal"}
)
"""The layout of each robot's public dataset."""


def _pose(observation: Observation) -> tuple[FloatArray, FloatArray, float] | None:
    position, orientation, opening = (
        observation.tcp_position,
        observation.tcp_quaternion,
        observation.gripper,
    )
    if position is None or orientation is None or opening is None:
        return None
    quaternion = np.asarray(orientation, dtype=np.float64)
    return (
        np.asarray(position, dtype=np.float64),
        quaternion,
        float(np.asarray(opening).reshape(())),
    )


def _matrix(quaternion: FloatArray) -> FloatArray:
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _roll_pitch_yaw(matrix: FloatArray) -> FloatArray:
    """Angles about the fixed axes x, y, z in turn, radians."""
    level = float(np.hypot(matrix[0, 0], matrix[1, 0]))
    pitch = np.arctan2(-matrix[2, 0], level)
    if level < 1e-9:  # straight up or down: roll and yaw turn about one axis, yaw takes none of it
        return np.array([np.arctan2(-matrix[1, 2], matrix[1, 1]), pitch, 0.0])
    roll = np.arctan2(matrix[2, 1], matrix[2, 2])
    return np.array([roll, pitch, np.arctan2(matrix[1, 0], matrix[0, 0])])
