"""A robot at its table: everything a tabletop simulator needs to know about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sapien
from mani_skill.sensors.camera import CameraConfig
from numpy.typing import NDArray

from envs.robot import RobotSpec

__all__ = ["Camera", "Rig"]

Camera = Callable[[tuple[int, int]], CameraConfig]
"""A camera by the size (height, width) of its image."""

Triple = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rig:
    """A robot, its position, its table and its cameras.

    Attributes:
        robot: what its actions mean.
        agent: its class in ManiSkill, with ``uid``, ``tcp``, ``home_qpos``, ``opening`` and
            ``is_grasping(actor)``.
        base_pose: pose of its base in the world.
        physics_freq_hz: physics steps a second, a multiple of the control rate.
        surface_m: height of the table top in the base frame.
        table_centre_m: centre of the table's slab in the world.
        table_half_size_m: half extents of it.
        cameras: what a policy may look through, by name; the first is the default.
        overview: camera for people.
        image_size: (height, width) of the policy's image where nothing else is asked for.
        action_high: largest action, shape ``(7,)``; the smallest is its negative.
    """

    robot: RobotSpec
    agent: Any
    base_pose: sapien.Pose
    physics_freq_hz: int
    surface_m: float
    table_centre_m: Triple
    table_half_size_m: Triple
    cameras: Mapping[str, Camera]
    overview: Camera
    image_size: tuple[int, int]
    action_high: NDArray[np.float32]
