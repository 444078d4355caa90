"""A scripted expert for Google Robot's picks in SimplerEnv: a pure function of what is there now.

The hand comes in aslant, away from the robot: straight down the wrist meets its limit. Heights follow
a funnel: the tool may come down only as far as it is above the object and turned across it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from envs.base import FloatArray
from envs.pose import between, pose7, rotation_vector, turned
from envs.simpler.state import Block, read_block

__all__ = ["PickState", "pick_action", "read_pick"]

CLOSE: Final = 1.0
OPEN: Final = -1.0
GAIN: Final = 2.0
"""Part of the way left that is commanded: the arm executes about a third of what is commanded."""
MAX_STEP_M: Final = 0.12
MAX_TURN_RAD: Final = 0.4
SLANT_RAD: Final = np.radians(30.0)
"""Lean of the hand from the vertical; at 20 degrees the wrist is near its limit over the far cans."""
TABLE_M: Final = 0.040
"""Least height of the tool over what a can stands on: the closed fingers reach below it."""
OVER_MIDDLE_M: Final = 0.010
"""Most height of the tool over the middle of a flat object; higher up the fingers miss it."""
BELOW_TOP_M: Final = 0.038
"""How far below its top a tall object is grasped."""
HOVER_M: Final = 0.10
NEAR_M: Final = 0.012
ABOVE_M: Final = 0.012
ALIGNED_RAD: Final = 0.2
LIFT_M: Final = 0.10
_DOWN: Final = np.array([0.0, 1.0, 0.0, 0.0])
"""The tool straight down, its fingers closing along the base's y axis."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PickState:
    """The tool and the object.

    Attributes:
        tcp: measured pose in the base frame, shape ``(7,)``.
        obj: the object.
        rise_m: how far it is above where it stood.
        grasped: the fingers hold it.
    """

    tcp: FloatArray
    obj: Block
    rise_m: float
    grasped: bool


def read_pick(sim: Any, *, grasped: bool) -> PickState:
    """The state of a pick.

    Args:
        sim: SimplerEnv's environment.
        grasped: whether the last step reported a grasp.
    """
    base = pose7(sim.agent.robot.pose)
    return PickState(
        tcp=between(base, pose7(sim.tcp.pose)),
        obj=read_block(sim, base, sim.obj, sim.model_scale),
        rise_m=float(sim.obj.pose.p[2] - sim.obj_height_after_settle),
        grasped=grasped,
    )


def pick_action(state: PickState) -> FloatArray:
    """The expert's action, shape ``(7,)``: metres, axis-angle in the base frame, gripper."""
    tcp, obj = state.tcp, state.obj
    if state.grasped:
        return _command(np.array([0.0, 0.0, LIFT_M - state.rise_m]), np.zeros(3), CLOSE)
    rotvec = rotation_vector(tcp[3:], _aslant(obj, tcp))
    twist = float(np.linalg.norm(rotvec))
    bottom = float(obj.centre[2]) - obj.half_height
    least = min(TABLE_M, obj.half_height + OVER_MIDDLE_M)
    depth = bottom + max(least, 2 * obj.half_height - BELOW_TOP_M)
    distance = float(np.hypot(*(tcp[:2] - obj.centre[:2])))
    if distance < NEAR_M and tcp[2] < depth + ABOVE_M and twist < ALIGNED_RAD:
        return _command(np.array([*obj.centre[:2], depth]) - tcp[:3], rotvec, CLOSE)
    lacking = max(distance - 0.010, 0.1 * (twist - 0.15), 0.0)
    height = depth + min(2.5 * lacking, HOVER_M)
    way = np.array([*obj.centre[:2], height]) - tcp[:3]
    if way[2] > 0.02:
        way[:2] *= 0.15
    return _command(way, rotvec, OPEN)


def _command(way: FloatArray, rotvec: FloatArray, gripper: float) -> FloatArray:
    """What to tell the arm so that it makes a good part of a way and a turn; bounded."""
    move, twist = GAIN * way, GAIN * rotvec
    move *= min(1.0, MAX_STEP_M / max(float(np.linalg.norm(move)), 1e-9))
    twist *= min(1.0, MAX_TURN_RAD / max(float(np.linalg.norm(twist)), 1e-9))
    return np.array([*move, *twist, gripper])


def _aslant(obj: Block, tcp: FloatArray) -> FloatArray:
    """The hand leaning outwards with its fingers across the object, as the tool is turned nearest."""
    across = 0.0 if obj.square else obj.axis_rad + np.pi / 2
    outwards = np.arctan2(obj.centre[1], obj.centre[0])
    lean = SLANT_RAD * np.array([np.sin(outwards), -np.cos(outwards), 0.0])
    # Straight down the fingers close along y; a half turn swaps the fingers.
    yaws = across - np.pi / 2 + np.array([0.0, np.pi])
    poses = [turned(turned(_DOWN, [0.0, 0.0, float(yaw)]), lean) for yaw in yaws]
    return min(poses, key=lambda pose: float(np.linalg.norm(rotation_vector(tcp[3:], pose))))
