"""A scripted expert for WidowX tabletop tasks, on observation and info alone.

It has no memory: what it does follows from where tool, object and goal are now, so it can take over
in any state. Heights follow a funnel: the tool comes down only as far as it is above its place and
turned right. It reads nothing but the contract of :mod:`envs.base`, so the real SimplerEnv's WidowX
tasks can use it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from envs.base import FloatArray, Info, Observation
from envs.pose import rotation_matrix, rotation_vector, turned
from monitor.errors import unknown_name

__all__ = ["HANDLING", "Handling", "expert_action", "next_action"]

OPEN: Final = 1.0
CLOSED: Final = -1.0
MAX_STEP_M: Final = 0.03
MAX_TURN_RAD: Final = 0.2
HOVER_M: Final = 0.075
"""Height over the grasp from which the tool comes down."""
NEAR_M: Final = 0.008
ALIGNED_RAD: Final = 0.12
CLEARANCE_M: Final = 0.018
"""Height of the tool over the ground, below which its fingertips would touch it."""
_DOWN: Final = np.array([0.5**0.5, 0.0, 0.5**0.5, 0.0])
"""Tool pointing straight down, fingers closing along the base's y axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handling:
    """How an object is taken and put down.

    Attributes:
        half_height_m: height of its origin over what it rests on.
        quarter_turns: looks the same after a quarter turn; a long object only after half a turn.
        along_m: where along its own x axis it is grasped.
        carry_m: height over its resting position at which it is carried.
        drop_m: height over its resting position at which it is let go.
    """

    half_height_m: float
    quarter_turns: bool = False
    along_m: float = 0.0
    carry_m: float = 0.065
    drop_m: float = 0.003


HANDLING: Final[Mapping[str, Handling]] = MappingProxyType(
    {
        "baked_green_cube_3cm": Handling(half_height_m=0.015, quarter_turns=True),
        "bridge_carrot_generated_modified": Handling(half_height_m=0.018),
        "bridge_spoon_generated_modified": Handling(half_height_m=0.009),
        "eggplant": Handling(half_height_m=0.019, carry_m=0.11, drop_m=0.02),
    }
)
"""Objects that the expert can move, by model."""

TOPS_M: Final[Mapping[str, float]] = MappingProxyType(
    {
        "baked_yellow_cube_3cm": 0.015,
        "bridge_plate_objaverse_larger": 0.004,
        "table_cloth_generated_shorter": 0.005,
        "dummy_sink_target_plane": 0.001,
    }
)
"""Height of a goal's upper face over its origin, by model."""


def expert_action(env: Any) -> FloatArray:
    """The next action in an environment that keeps what it last returned in ``last``.

    Returns:
        Action in the environment's units, shape ``(7,)``.

    Raises:
        RuntimeError: before the first reset.
    """
    last = env.unwrapped.last
    if last is None:
        msg = "the expert has seen nothing yet; call reset first"
        raise RuntimeError(msg)
    return next_action(*last)


def next_action(obs: Observation, info: Info) -> FloatArray:
    """The action that brings the object nearer to its goal.

    Args:
        obs: what the environment returned last.
        info: the same.

    Returns:
        Action of a WidowX, shape ``(7,)``: metres, axis-angle radians, +1 to open.

    Raises:
        ValueError: if the expert does not know this object or goal; the text says which it knows.
    """
    name, target = info["object"], str(info["target"])
    if name not in HANDLING:
        raise ValueError(unknown_name("object of the expert", name, HANDLING))
    if target not in TOPS_M:
        raise ValueError(unknown_name("goal of the expert", target, TOPS_M))
    handling, poses = HANDLING[name], info["object_poses"]
    obj, tool = poses[name], obs["tcp_position"]
    if info["success"] and not info["grasped"]:
        away = np.array([*tool[:2], obj[2] + 0.1])
        return _towards(obs, away, obs["tcp_quaternion"], OPEN)
    if info["grasped"]:
        top = poses[target][:3] + np.array([0.0, 0.0, TOPS_M[target]])
        return _carry(obs, handling, obj[:3], top)
    return _fetch(obs, handling, obj)


def _fetch(obs: Observation, handling: Handling, obj: FloatArray) -> FloatArray:
    """Come down over the object with open fingers turned across it, then close them."""
    tool = obs["tcp_position"]
    position = obj[:3] + rotation_matrix(obj[3:]) @ np.array([handling.along_m, 0.0, 0.0])
    position[2] = obj[2] - handling.half_height_m + max(handling.half_height_m, CLEARANCE_M)
    wanted = _grasp_turn(obs["tcp_quaternion"], obj[3:], handling.quarter_turns)
    twist = float(np.linalg.norm(rotation_vector(obs["tcp_quaternion"], wanted)))
    distance = float(np.hypot(*(tool[:2] - position[:2])))
    if distance < NEAR_M and twist < 2 * ALIGNED_RAD and tool[2] < position[2] + 0.006:
        return _towards(obs, position, wanted, CLOSED)
    lacking = max(distance - 0.010, 0.1 * (twist - ALIGNED_RAD), 0.0)
    height = position[2] + min(2.5 * lacking, HOVER_M)
    return _towards(obs, np.array([*position[:2], height]), wanted, OPEN, keep_above_m=height)


def _carry(obs: Observation, handling: Handling, obj: FloatArray, top: FloatArray) -> FloatArray:
    """Lift, move over the goal, lower, open."""
    tool = obs["tcp_position"]
    resting = top[2] + handling.half_height_m + (tool[2] - obj[2]) + handling.drop_m
    goal = top[:2] + (tool[:2] - obj[:2])
    distance = float(np.hypot(*(tool[:2] - goal)))
    height = resting + np.clip((distance - 0.010) * 2.0, 0.0, handling.carry_m)
    if distance < 0.014 and tool[2] < resting + 0.008:
        return _towards(obs, np.array([*goal, resting]), obs["tcp_quaternion"], OPEN)
    upright = _level(obs["tcp_quaternion"])
    return _towards(obs, np.array([*goal, height]), upright, CLOSED, keep_above_m=height)


def _yaw(quaternion: FloatArray) -> float:
    """Turn about the vertical of a tool that points down, from :data:`_DOWN` [rad]."""
    fingers = rotation_matrix(quaternion)[:, 1]
    return float(np.arctan2(-fingers[0], fingers[1]))


def _level(quaternion: FloatArray) -> FloatArray:
    """Straight down with the yaw that the tool has."""
    return turned(_DOWN, [0.0, 0.0, _yaw(quaternion)])


def _grasp_turn(tool: FloatArray, obj: FloatArray, quarter_turns: bool) -> FloatArray:
    """Straight down with the fingers across the object's long axis, the nearest such turn."""
    axes = rotation_matrix(obj)
    level = np.hypot(axes[0], axes[1])
    axis = axes[:, int(np.argmax(level)) if quarter_turns else 0]
    # Fingers close along y at yaw 0: across an object that lies along x.
    along, now = float(np.arctan2(axis[1], axis[0])), _yaw(tool)
    period = np.pi / 2 if quarter_turns else np.pi
    return turned(_DOWN, [0.0, 0.0, now + (along - now + period / 2) % period - period / 2])


def _towards(
    obs: Observation,
    goal: FloatArray,
    wanted: FloatArray,
    gripper: float,
    keep_above_m: float | None = None,
) -> FloatArray:
    """One bounded step to ``goal``; sideways only when the tool is high enough."""
    way = goal - obs["tcp_position"]
    if keep_above_m is not None and keep_above_m - obs["tcp_position"][2] > 0.02:
        way[:2] *= 0.15
    way *= min(1.0, MAX_STEP_M / max(float(np.linalg.norm(way)), 1e-9))
    rotvec = rotation_vector(obs["tcp_quaternion"], wanted)
    length = float(np.linalg.norm(rotvec))
    rotvec = rotvec * min(1.0, MAX_TURN_RAD / length) if length > 0.02 else np.zeros(3)
    return np.concatenate([way, rotvec, [gripper]])
