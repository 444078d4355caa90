"""The Google Robot at its table, and the two tasks that it has there."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import numpy as np
from mani_skill.sensors.camera import CameraConfig
from mani_skill.utils import sapien_utils

from envs.google.agent import BASE_POSE, GoogleRobot
from envs.google.scene import MOVE_NEAR, PICK
from envs.robot import ROBOTS
from envs.tabletop.env import TabletopEnv
from envs.tabletop.lift import Lift
from envs.tabletop.near import Near
from envs.tabletop.rig import Rig
from envs.tabletop.task import TabletopTask

__all__ = ["GOOGLE", "SURFACE_M", "move_near", "pick"]

SURFACE_M: Final = 0.87 - 0.07905
_EXPERT: Final = "envs.google.expert:expert_action"


def _overhead_camera(size: tuple[int, int]) -> CameraConfig:
    """Where the robot's own head camera looks from, as SimplerEnv tilts it, a little closer."""
    height, width = size
    pose = sapien_utils.look_at([0.20, 0.20, 1.43], [-0.24, 0.20, 0.90])
    return CameraConfig(
        "overhead", pose=pose, width=width, height=height, fov=0.85, near=0.01, far=10
    )


def _overview(size: tuple[int, int]) -> CameraConfig:
    height, width = size
    pose = sapien_utils.look_at([-0.95, -0.55, 1.55], [0.0, 0.2, 0.9])
    return CameraConfig("render", pose=pose, width=width, height=height, fov=0.85)


GOOGLE: Final = Rig(
    robot=ROBOTS["google_robot"],
    agent=GoogleRobot,
    base_pose=BASE_POSE,
    # 171 physics steps a control step, as in SimplerEnv; at 250 Hz and less grasps are unstable.
    physics_freq_hz=513,
    surface_m=SURFACE_M,
    table_centre_m=(-0.465, 0.1, 0.85),
    table_half_size_m=(0.485, 0.7, 0.02),
    cameras=MappingProxyType({"overhead": _overhead_camera}),
    overview=_overview,
    image_size=(96, 120),
    action_high=np.array([0.10, 0.10, 0.10, 0.4, 0.4, 0.4, 1.0], dtype=np.float32),
)
"""Control at 3 Hz over 513 Hz physics."""


def pick(**kwargs: Any) -> TabletopEnv:
    """``google-pick``: lift the object that the instruction names.

    Args:
        **kwargs: further arguments of :class:`~envs.tabletop.env.TabletopEnv`.
    """
    task = TabletopTask(rig=GOOGLE, goal=Lift(rise_m=0.03), spread=PICK, expert=_EXPERT)
    return TabletopEnv(task, **kwargs)


def move_near(**kwargs: Any) -> TabletopEnv:
    """``google-move-near``: move the object that the instruction names near another one.

    Args:
        **kwargs: further arguments of :class:`~envs.tabletop.env.TabletopEnv`.
    """
    task = TabletopTask(rig=GOOGLE, goal=Near(gap_m=0.05), spread=MOVE_NEAR, expert=_EXPERT)
    return TabletopEnv(task, **kwargs)
