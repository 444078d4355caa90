"""The WidowX at its table, and the two tasks that it has there."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import numpy as np
import sapien
from mani_skill.sensors.camera import CameraConfig
from mani_skill.utils import sapien_utils

from envs.robot import ROBOTS
from envs.tabletop.basket import Basket
from envs.tabletop.env import TabletopEnv
from envs.tabletop.plate import Plate
from envs.tabletop.rig import Rig
from envs.tabletop.task import TabletopTask
from envs.widowx.agent import BASE_POSE, WidowX250S
from envs.widowx.scene import PUT_IN, PUT_ON

__all__ = ["WIDOWX", "put_in", "put_on"]

_EXPERT: Final = "envs.widowx.expert:expert_action"


def _front_camera(size: tuple[int, int]) -> CameraConfig:
    """A camera that faces the robot: both fingers and the table fill the image."""
    height, width = size
    pose = sapien_utils.look_at([-0.62, 0.0, 1.25], [-0.13, 0.005, 0.905])
    return CameraConfig("front", pose=pose, width=width, height=height, fov=0.56, near=0.01, far=10)


def _bridge_camera(size: tuple[int, int]) -> CameraConfig:
    """The over-the-shoulder camera of Bridge V2 as SimplerEnv places it."""
    height, width = size
    pose = BASE_POSE * sapien.Pose(
        [0.0, -0.16, 0.36], [0.8992917, -0.09263245, 0.35892478, 0.23209205]
    )
    fov = 2 * float(np.arctan(240 / 623.588))
    return CameraConfig("bridge", pose=pose, width=width, height=height, fov=fov, near=0.01, far=10)


def _overview(size: tuple[int, int]) -> CameraConfig:
    height, width = size
    pose = sapien_utils.look_at([-0.62, -0.44, 1.42], [-0.04, 0.0, 0.97])
    return CameraConfig("render", pose=pose, width=width, height=height, fov=0.75)


WIDOWX: Final = Rig(
    robot=ROBOTS["widowx"],
    agent=WidowX250S,
    base_pose=BASE_POSE,
    physics_freq_hz=500,
    surface_m=0.0,
    table_centre_m=(-0.175, 0.1, 0.85),
    table_half_size_m=(0.575, 0.7, 0.02),
    cameras=MappingProxyType({"front": _front_camera, "bridge": _bridge_camera}),
    overview=_overview,
    image_size=(96, 96),
    action_high=np.array([0.05, 0.05, 0.05, 0.25, 0.25, 0.25, 1.0], dtype=np.float32),
)
"""Control at 5 Hz over 500 Hz physics."""


def put_on(**kwargs: Any) -> TabletopEnv:
    """``widowx-put-on``: put the object that the instruction names on the plate.

    Args:
        **kwargs: further arguments of :class:`~envs.tabletop.env.TabletopEnv`.
    """
    task = TabletopTask(rig=WIDOWX, goal=Plate(), spread=PUT_ON, expert=_EXPERT)
    return TabletopEnv(task, **kwargs)


def put_in(**kwargs: Any) -> TabletopEnv:
    """``widowx-put-in``: put the object that the instruction names into the basket.

    Args:
        **kwargs: further arguments of :class:`~envs.tabletop.env.TabletopEnv`.
    """
    task = TabletopTask(rig=WIDOWX, goal=Basket(), spread=PUT_IN, expert=_EXPERT)
    return TabletopEnv(task, **kwargs)
