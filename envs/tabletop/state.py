"""What is true on a table, and the distance to its goal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from envs.base import FloatArray
from envs.goal import goal_distance
from envs.tabletop.simulator import Tabletop

__all__ = ["State", "read_state"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """What is true on the table now (privileged); metres in the robot base frame.

    Attributes:
        tcp_position: shape ``(3,)``.
        tcp_quaternion: (w, x, y, z), shape ``(4,)``.
        aim_position: where the controller wants the tool, shape ``(3,)``; an arm lags behind it.
        aim_quaternion: (w, x, y, z), shape ``(4,)``.
        gripper: opening, 0 closed to 1 open.
        joint_positions: shape ``(J,)``, rad and metres.
        named_position: centre of the named object, shape ``(3,)``.
        other_position: centre of the other object, shape ``(3,)``.
        target_position: where an object rests on the goal, or the goal object's centre, shape
            ``(3,)``; None where there is no goal.
        grasped: the fingers hold the named object now.
        other_grasped: the fingers hold the other object now.
        placed: the named object is where the goal wants it.
        other_placed: the other object is.
    """

    tcp_position: FloatArray
    tcp_quaternion: FloatArray
    aim_position: FloatArray
    aim_quaternion: FloatArray
    gripper: float
    joint_positions: FloatArray
    named_position: FloatArray
    other_position: FloatArray
    target_position: FloatArray | None
    grasped: bool
    other_grasped: bool
    placed: bool
    other_placed: bool

    def goal_distance_m(self) -> float:
        """Distance to the goal by phase, metres (docs/metrics.md).

        Before the grasp the way of the tool to the object plus that of the object to its goal; with
        the object in hand the way of the tool to the goal; once the object is there, what the
        object itself still lacks. Where an object is only to be picked up, the way of the tool.
        """
        return goal_distance(
            self.tcp_position,
            self.named_position,
            self.target_position,
            grasped=self.grasped,
            success=self.placed,
        )


def read_state(table: Tabletop) -> State:
    """The present state of a table."""
    inverse = table.rig.base_pose.inv()
    tcp = inverse * table.agent.tcp.pose.sp
    aim = table.agent.controller.controllers["arm"]._target_pose.sp
    named, other = table.objects["named"], table.objects["other"]
    held = {role: bool(table.agent.is_grasping(table.objects[role])) for role in ("named", "other")}
    target = None
    if table.goal_body is not None:
        top = np.array([0.0, 0.0, table.goal.top_m])
        target = ((inverse * table.goal_body.pose.sp).p + top).astype(np.float64)
    return State(
        tcp_position=tcp.p.astype(np.float64),
        tcp_quaternion=tcp.q.astype(np.float64),
        aim_position=aim.p.astype(np.float64),
        aim_quaternion=aim.q.astype(np.float64),
        gripper=float(np.clip(table.agent.opening, 0.0, 1.0)),
        joint_positions=table.agent.robot.get_qpos()[0].numpy().astype(np.float64),
        named_position=(inverse * named.pose.sp).p.astype(np.float64),
        other_position=(inverse * other.pose.sp).p.astype(np.float64),
        target_position=target,
        grasped=held["named"],
        other_grasped=held["other"],
        placed=table.goal.reached(table, "named", held["named"]),
        other_placed=table.goal.reached(table, "other", held["other"]),
    )
