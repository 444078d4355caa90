"""The WidowX-250s as a ManiSkill agent: our own URDF, end-effector delta control in metres."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import sapien
import torch
from mani_skill.agents.base_agent import BaseAgent
from mani_skill.agents.controllers import (
    PDEEPoseControllerConfig,
    PDJointPosMimicControllerConfig,
)
from mani_skill.agents.registration import register_agent
from mani_skill.utils import common
from numpy.typing import NDArray

__all__ = ["BASE_POSE", "FINGER_CLOSED_M", "FINGER_OPEN_M", "HOME_QPOS", "WidowX250S"]

BASE_POSE: Final = sapien.Pose([0.147, 0.028, 0.870], [0.0, 0.0, 0.0, 1.0])
"""Robot base in the world, as in SimplerEnv's WidowX tasks; the table top is at z = 0.87 m."""

HOME_QPOS: Final = np.array(
    [-0.01840777, 0.0398835, 0.22242722, -0.00460194, 1.36524296, 0.00153398, 0.037, 0.037]
)
"""Start of every episode (rad; fingers in metres), as in SimplerEnv's WidowX tasks."""

FINGER_CLOSED_M: Final = 0.015
FINGER_OPEN_M: Final = 0.037

_ARM_JOINTS: Final = (
    "waist",
    "shoulder",
    "elbow",
    "forearm_roll",
    "wrist_angle",
    "wrist_rotate",
)
_FINGER_JOINTS: Final = ("left_finger", "right_finger")
_FINGER_LINKS: Final = ("left_finger_link", "right_finger_link")


@register_agent()
class WidowX250S(BaseAgent):  # type: ignore[misc]
    """WidowX-250s drawn from boxes and cylinders with the published joint origins."""

    uid = "vlawatch_widowx250s"
    urdf_path = str(Path(__file__).parent / "robot" / "wx250s.urdf")
    urdf_config: dict[str, Any] = {  # noqa: RUF012 - ManiSkill reads a class attribute
        "_materials": {
            "finger": {"static_friction": 2.0, "dynamic_friction": 2.0, "restitution": 0.0}
        },
        "link": {
            name: {"material": "finger", "patch_radius": 0.01, "min_patch_radius": 0.01}
            for name in _FINGER_LINKS
        },
    }

    @property
    def _controller_configs(self) -> dict[str, Any]:
        # Gains are SimplerEnv's, so that a step of a policy moves this arm as it moves theirs.
        arm = PDEEPoseControllerConfig(
            joint_names=list(_ARM_JOINTS),
            pos_lower=-1.0,
            pos_upper=1.0,
            rot_lower=-np.pi / 2,
            rot_upper=np.pi / 2,
            stiffness=[1169.79, 730.0, 808.46, 1229.13, 1272.28, 1056.33],
            damping=[330.0, 180.0, 152.12, 309.62, 201.05, 269.51],
            force_limit=[200, 200, 100, 100, 100, 100],
            ee_link="ee_gripper_link",
            urdf_path=self.urdf_path,
            # ManiSkill 3.0.1 flips the sign of a normalised rotation; ours is in radians.
            normalize_action=False,
            use_target=True,
        )
        fingers = PDJointPosMimicControllerConfig(
            joint_names=list(_FINGER_JOINTS),
            lower=FINGER_CLOSED_M - 0.001,
            upper=FINGER_OPEN_M + 0.001,
            stiffness=1000,
            damping=200,
            force_limit=60,
            normalize_action=True,
            drive_mode="force",
            mimic={_FINGER_JOINTS[1]: {"joint": _FINGER_JOINTS[0]}},
        )
        return {"pd_ee_target_delta_pose": {"arm": arm, "gripper": fingers}}

    @property
    def tcp(self) -> Any:
        """Link of the tool centre point."""
        return self.robot.links_map["ee_gripper_link"]

    @property
    def home_qpos(self) -> NDArray[np.float64]:
        """Joints at the start of an episode, shape ``(8,)``."""
        return HOME_QPOS

    @property
    def opening(self) -> float:
        """Opening of the fingers, 0 closed to 1 open; a little beyond when they are pressed."""
        fingers = self.robot.get_qpos()[0].numpy().astype(np.float64)[6:8]
        return float((fingers.mean() - FINGER_CLOSED_M) / (FINGER_OPEN_M - FINGER_CLOSED_M))

    def is_grasping(self, actor: Any, min_force_n: float = 0.5, max_angle_deg: float = 85.0) -> Any:
        """Whether both fingers press ``actor`` from opposite sides now, shape ``(num_envs,)``."""
        result = torch.ones(1, dtype=torch.bool)
        for name, side in zip(_FINGER_LINKS, (1.0, -1.0), strict=True):
            link = self.robot.links_map[name]
            force = self.scene.get_pairwise_contact_forces(link, actor)
            inward = side * link.pose.to_transformation_matrix()[..., :3, 1]
            angle_deg = torch.rad2deg(common.compute_angle_between(inward, force))
            result = (
                result
                & (torch.linalg.norm(force, axis=1) >= min_force_n)
                & (angle_deg <= max_angle_deg)
            )
        return result
