"""The Google Robot as a ManiSkill agent: our own URDF, end-effector delta control in metres."""

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
from numpy.typing import NDArray

__all__ = ["BASE_POSE", "FINGER_CLOSED_RAD", "GoogleRobot"]

BASE_POSE: Final = sapien.Pose([0.35, 0.20, 0.06205 + 0.017], [0.0, 0.0, 0.0, 1.0])
"""Robot base in the world, as in SimplerEnv's Google Robot tasks; the table's top is at 0.87 m."""

FINGER_CLOSED_RAD: Final = 1.3

_ARM_HOME: Final = {
    "joint_torso": -0.2639457,
    "joint_shoulder": 0.0831913,
    "joint_bicep": 0.5017612,
    "joint_elbow": 1.156859,
    "joint_forearm": 0.0285837,
    "joint_wrist": 1.5925982,
    "joint_gripper": -1.080653,
}
_HEAD_HOME: Final = {"joint_head_pan": -0.00285961, "joint_head_tilt": 0.7851361}
"""Start of every episode [rad], as in SimplerEnv's Google Robot tasks; the fingers are open."""
_FINGER_JOINTS: Final = ("joint_finger_right", "joint_finger_left")
_FINGERS: Final = (
    ("link_finger_right", "link_finger_tip_right"),
    ("link_finger_left", "link_finger_tip_left"),
)


@register_agent()
class GoogleRobot(BaseAgent):  # type: ignore[misc]
    """The Google Robot drawn from boxes and cylinders with the published joint origins."""

    uid = "vlawatch_google_robot"
    urdf_path = str(Path(__file__).parent / "robot" / "google_robot.urdf")
    urdf_config: dict[str, Any] = {  # noqa: RUF012 - ManiSkill reads a class attribute
        "_materials": {
            "finger": {"static_friction": 2.0, "dynamic_friction": 2.0, "restitution": 0.0}
        },
        "link": {
            link: {"material": "finger", "patch_radius": 0.1, "min_patch_radius": 0.1}
            for side in _FINGERS
            for link in side
        },
    }

    @property
    def _controller_configs(self) -> dict[str, Any]:
        # Gains are SimplerEnv's, so that a step of a policy moves this arm as it moves theirs.
        arm = PDEEPoseControllerConfig(
            joint_names=list(_ARM_HOME),
            pos_lower=-1.0,
            pos_upper=1.0,
            rot_lower=-np.pi / 2,
            rot_upper=np.pi / 2,
            stiffness=[1700.0, 1737.0, 980.0, 930.0, 1212.0, 433.0, 468.0],
            damping=[1060.0, 1010.0, 767.0, 680.0, 675.0, 274.6, 340.5],
            force_limit=[300, 300, 100, 100, 100, 100, 100],
            ee_link="link_gripper_tcp",
            urdf_path=self.urdf_path,
            # ManiSkill 3.0.1 flips the sign of a normalised rotation; ours is in radians.
            normalize_action=False,
            use_target=True,
        )
        # An absolute target of the fingers: the environment adds up the changes that it is given.
        # SimplerEnv lets them press with 60 N m, which shifts this lighter arm by centimetres.
        fingers = PDJointPosMimicControllerConfig(
            joint_names=list(_FINGER_JOINTS),
            lower=-0.01,
            upper=FINGER_CLOSED_RAD + 0.01,
            stiffness=200,
            damping=8,
            force_limit=5,
            normalize_action=True,
            drive_mode="force",
            mimic={_FINGER_JOINTS[1]: {"joint": _FINGER_JOINTS[0]}},
        )
        return {"pd_ee_target_delta_pose": {"arm": arm, "gripper": fingers}}

    def _after_loading_articulation(self) -> None:
        # No action moves the head: it is held where it starts.
        for name, angle_rad in _HEAD_HOME.items():
            joint = self.robot.joints_map[name]
            joint.set_drive_properties(2000.0, 900.0)
            joint.set_drive_target(angle_rad)

    @property
    def tcp(self) -> Any:
        """Link of the tool centre point."""
        return self.robot.links_map["link_gripper_tcp"]

    @property
    def home_qpos(self) -> NDArray[np.float64]:
        """Joints at the start of an episode, shape ``(11,)``."""
        home = {**_ARM_HOME, **_HEAD_HOME}
        return np.array([home.get(joint.name, 0.0) for joint in self.robot.active_joints])

    @property
    def opening(self) -> float:
        """Opening of the fingers, 0 closed to 1 open; a little beyond when they are pressed."""
        joints = self.robot.get_qpos()[0].numpy().astype(np.float64)
        indices = [int(self.robot.joints_map[name].active_index[0]) for name in _FINGER_JOINTS]
        return 1.0 - float(joints[indices].mean()) / FINGER_CLOSED_RAD

    def is_grasping(self, actor: Any, min_force_n: float = 0.5) -> bool:
        """Whether fingers press ``actor`` from opposite sides now."""
        right, left = (
            sum(
                self.scene.get_pairwise_contact_forces(self.robot.links_map[link], actor)[0]
                for link in side
            )
            for side in _FINGERS
        )
        strong = min(float(torch.linalg.norm(force)) for force in (right, left)) >= min_force_n
        return strong and float(torch.dot(right, left)) < 0.0
