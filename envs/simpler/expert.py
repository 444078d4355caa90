"""A scripted expert for SimplerEnv: a pure function of what is on the table now.

WidowX's is here, Google Robot's for picks in :mod:`envs.simpler.pick_expert`. Neither has memory or
stages, so that they can go on from any state that a policy leaves behind.
The tool may descend only as far as it is centred above its goal.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from envs.base import FloatArray
from envs.pose import multiply, rotation_vector
from envs.simpler.pick_expert import pick_action, read_pick
from envs.simpler.state import State, read_state
from envs.simpler.tasks import Kind
from monitor.errors import ConfigError

__all__ = ["expert_action", "widowx_action"]

OPEN: Final = 1.0
CLOSED: Final = -1.0
MAX_STEP_M: Final = 0.03
MAX_TURN_RAD: Final = 0.25
FINGERTIP_M: Final = 0.021
"""The fingertips reach 16 mm below the tool centre point; on the table they would stick to it."""
HOVER_M: Final = 0.06
"""Height above the grasp from which the tool comes down."""
CARRY_M: Final = 0.07
"""Height above the resting position at which an object is carried."""
REST_HEIGHT_M: Final = 0.16
"""Height of the tool when the work is done, above the robot's base."""
NEAR_M: Final = 0.007
_DOWN: Final = (0.0, 0.0, 0.0, 0.5**0.5, 0.0, 0.5**0.5, 0.0)
"""The tool straight down, its fingers closing along the base's y axis."""


def expert_action(env: Any) -> FloatArray:
    """The action that brings the named object nearer to its target.

    Args:
        env: a WidowX task or a pick of :class:`envs.simpler.env.SimplerTaskEnv`, in any state.

    Returns:
        Action in SimplerEnv's units, shape ``(7,)``.

    Raises:
        ValueError: if it is another task of Google Robot.
    """
    core = getattr(env, "unwrapped", env)
    if core.task.kind is Kind.PICK:
        return pick_action(read_pick(core.sim, grasped=core.grasped))
    if core.robot.name != "widowx":
        msg = f"the expert of SimplerEnv moves WidowX and picks; {core.task.name!r} is neither"
        raise ConfigError(msg)
    return widowx_action(read_state(core.sim, grasped=core.grasped, success=core.success))


def widowx_action(state: State) -> FloatArray:
    """The expert's action, shape ``(7,)``: metres, axis-angle in the base frame, gripper."""
    tcp = state.tcp_position
    if state.success and not state.grasped:
        return _towards(state, np.array([tcp[0], tcp[1], REST_HEIGHT_M]), OPEN)
    return _carry(state) if state.grasped else _fetch(state)


def _fetch(state: State) -> FloatArray:
    """Come down over the object with open fingers, then close them."""
    tcp, obj = state.tcp_position, state.obj
    bottom = obj.centre[2] - obj.half_height
    depth = max(float(obj.centre[2]), bottom + FINGERTIP_M)
    distance = float(np.hypot(*(tcp[:2] - obj.centre[:2])))
    height = depth + np.clip((distance - 0.010) * 2.5, 0.0, HOVER_M)
    if distance < NEAR_M and tcp[2] < depth + 0.006:
        return _towards(state, np.array([*obj.centre[:2], depth]), CLOSED)
    return _towards(state, np.array([*obj.centre[:2], height]), OPEN, keep_above_m=height)


def _carry(state: State) -> FloatArray:
    """Lift, move over the target, lower, open."""
    tcp, obj, target = state.tcp_position, state.obj, state.target
    bottom = obj.centre[2] - obj.half_height
    resting = target.centre[2] + target.half_height + (tcp[2] - bottom) + 0.002
    goal = target.centre[:2] + (tcp[:2] - obj.centre[:2])
    distance = float(np.hypot(*(tcp[:2] - goal)))
    height = resting + np.clip((distance - 0.008) * 2.0, 0.0, CARRY_M)
    if distance < 0.010 and tcp[2] < resting + 0.006:
        return _towards(state, np.array([*goal, resting]), OPEN)
    return _towards(state, np.array([*goal, height]), CLOSED, keep_above_m=height)


def _towards(
    state: State, goal: FloatArray, gripper: float, keep_above_m: float | None = None
) -> FloatArray:
    """One bounded step to ``goal``; sideways only when the tool is high enough.

    The arm lags behind the pose that its controller aims at, so the step is taken from there, and
    what gravity keeps it from is added where the aim is reached and the tool is not.
    """
    delta = goal - state.aim[:3]
    left = goal - state.tcp_position
    if np.linalg.norm(delta) < 0.003 and np.linalg.norm(left) > 0.004:
        delta = delta + 0.6 * left
    if keep_above_m is not None and keep_above_m - state.tcp_position[2] > 0.02:
        delta[:2] *= 0.15
    delta *= min(1.0, MAX_STEP_M / max(float(np.linalg.norm(delta)), 1e-9))
    rotvec = rotation_vector(state.aim[3:], _grasp_quaternion(state))
    rotvec *= min(1.0, MAX_TURN_RAD / max(float(np.linalg.norm(rotvec)), 1e-9))
    return np.concatenate([delta, rotvec, [gripper]])


def _grasp_quaternion(state: State) -> FloatArray:
    """The tool straight down with its fingers across the object's longer side, (w, x, y, z)."""
    if state.grasped or state.success:
        return _nearest_down(state.aim)
    period = np.pi / 2 if state.obj.square else np.pi
    yaw = (state.obj.axis_rad + period / 2) % period - period / 2
    return _down(yaw)


def _nearest_down(aim: FloatArray) -> FloatArray:
    """Straight down with the yaw that the tool has, so that a held object is not swung round."""
    yaws = np.linspace(-np.pi / 2, np.pi / 2, 37)
    turns = [np.linalg.norm(rotation_vector(aim[3:], _down(float(yaw)))) for yaw in yaws]
    return _down(float(yaws[int(np.argmin(turns))]))


def _down(yaw_rad: float) -> FloatArray:
    half = yaw_rad / 2
    half_turn = [0.0, 0.0, 0.0, np.cos(half), 0.0, 0.0, np.sin(half)]
    return multiply(half_turn, _DOWN)[3:]
