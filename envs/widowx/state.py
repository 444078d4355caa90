"""What is true on the table of ``widowx-put-on``, and the distance to its goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from envs.widowx.agent import BASE_POSE, FINGER_CLOSED_M, FINGER_OPEN_M
from envs.widowx.scene import SHAPES, Scene
from envs.widowx.tabletop import PLATE_HALF_HEIGHT_M, PLATE_RADIUS_M, Tabletop

__all__ = ["State", "read_state"]

_TOUCH_FORCE_N: Final = 0.01

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """What is true on the table now (privileged); metres in the robot base frame.

    Attributes:
        tcp_position: shape ``(3,)``.
        tcp_quaternion: (w, x, y, z), shape ``(4,)``.
        gripper: opening, 0 closed to 1 open.
        joint_positions: shape ``(8,)``, rad and metres.
        named_position: centre of the named object, shape ``(3,)``.
        other_position: centre of the other object, shape ``(3,)``.
        target_position: middle of the plate's upper face, shape ``(3,)``.
        grasped: the fingers hold the named object now.
        other_grasped: the fingers hold the other object now.
        placed: the named object lies on the plate and is not held.
        other_placed: the other object does.
    """

    tcp_position: FloatArray
    tcp_quaternion: FloatArray
    gripper: float
    joint_positions: FloatArray
    named_position: FloatArray
    other_position: FloatArray
    target_position: FloatArray
    grasped: bool
    other_grasped: bool
    placed: bool
    other_placed: bool

    def goal_distance_m(self) -> float:
        """Distance to the goal by phase, metres (spec 5).

        Before the grasp the way of the tool to the object plus that of the object to the plate;
        with the object in hand the way of the tool to the plate; once the object lies there, what
        the object itself still lacks.
        """
        to_target = float(np.linalg.norm(self.named_position - self.target_position))
        if self.placed:
            return to_target
        if self.grasped:
            return float(np.linalg.norm(self.tcp_position - self.target_position))
        return float(np.linalg.norm(self.tcp_position - self.named_position)) + to_target


def read_state(table: Tabletop, scene: Scene) -> State:
    """The present state of a table that was laid for ``scene``."""
    inverse = BASE_POSE.inv()
    tcp = inverse * table.agent.tcp.pose.sp
    named, other = table.objects["named"], table.objects["other"]
    target = (inverse * table.plate.pose.sp).p + np.array([0.0, 0.0, PLATE_HALF_HEIGHT_M])
    qpos = table.agent.robot.get_qpos()[0].numpy().astype(np.float64)
    opening = (qpos[6:8].mean() - FINGER_CLOSED_M) / (FINGER_OPEN_M - FINGER_CLOSED_M)
    held = {role: bool(table.agent.is_grasping(actor)[0]) for role, actor in table.objects.items()}
    return State(
        tcp_position=tcp.p.astype(np.float64),
        tcp_quaternion=tcp.q.astype(np.float64),
        gripper=float(np.clip(opening, 0.0, 1.0)),
        joint_positions=qpos,
        named_position=(inverse * named.pose.sp).p.astype(np.float64),
        other_position=(inverse * other.pose.sp).p.astype(np.float64),
        target_position=target.astype(np.float64),
        grasped=held["named"],
        other_grasped=held["other"],
        placed=_on_plate(table, scene, "named") and not held["named"],
        other_placed=_on_plate(table, scene, "other") and not held["other"],
    )


def _on_plate(table: Tabletop, scene: Scene, role: str) -> bool:
    actor: Any = table.objects[role]
    shape = SHAPES[(scene.named if role == "named" else scene.other).shape]
    offset = actor.pose.sp.p - table.plate.pose.sp.p
    height = offset[2] - PLATE_HALF_HEIGHT_M
    inside = bool(np.hypot(offset[0], offset[1]) < PLATE_RADIUS_M)
    force = table.scene.get_pairwise_contact_forces(actor, table.plate)
    touching = bool(torch.linalg.norm(force) > _TOUCH_FORCE_N)
    return inside and touching and 0.0 < height < max(shape.half_size_m) + 0.015
