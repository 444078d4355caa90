"""A scripted expert on privileged state: a pure function of what is on the table now.

It has no memory and no stages to restart, so it can label any state that a learner or a recovery
gets into. Heights follow a funnel: the tool may come down only as far as it is above its goal.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from envs.widowx.scene import SHAPES, Placement
from envs.widowx.state import State

__all__ = ["expert_action"]

FloatArray = NDArray[np.float64]

OPEN: Final = 1.0
CLOSED: Final = -1.0
MAX_STEP_M: Final = 0.03
MAX_TURN_RAD: Final = 0.2
HOVER_M: Final = 0.075
"""Height above the grasp from which the tool comes down."""
CARRY_M: Final = 0.065
"""Height above the resting place at which an object is carried."""
REST_HEIGHT_M: Final = 0.15
"""Height of the tool when the work is done."""
NEAR_M: Final = 0.007
_HOME_ROTATION: Final = Rotation.from_quat([0.0, 0.7071068, 0.0, 0.7071068])
"""Tool pointing straight down, fingers closing along the base's y axis."""


def expert_action(env: Any, target: str = "named") -> FloatArray:
    """The action that brings the named (or the other) object nearer to the plate.

    Args:
        env: ``widowx-put-on``, in any state.
        target: ``"named"`` for the object that the instruction names, ``"other"`` for the other.

    Returns:
        Action in the environment's units, shape ``(7,)``.

    Raises:
        ValueError: if ``target`` is neither.
    """
    state, scene = env.unwrapped.state, env.unwrapped.scene
    if target == "named":
        return _action(state, scene.named, state.named_position, state.grasped, state.placed)
    if target == "other":
        return _action(
            state, scene.other, state.other_position, state.other_grasped, state.other_placed
        )
    msg = f"target must be 'named' or 'other', got {target!r}"
    raise ValueError(msg)


def _action(
    state: State, placement: Placement, position: FloatArray, grasped: bool, placed: bool
) -> FloatArray:
    shape = SHAPES[placement.shape]
    tcp = state.tcp_position
    if placed:
        return _towards(state, np.array([tcp[0], tcp[1], REST_HEIGHT_M]), OPEN)
    if grasped:
        return _carry(state, position, shape.half_size_m[2])
    return _fetch(state, position, shape.grasp_height_m)


def _fetch(state: State, position: FloatArray, grasp_height_m: float) -> FloatArray:
    """Come down over the object with open fingers, then close them."""
    tcp = state.tcp_position
    # A tipped or raised object is grasped where it is, never below the table's clearance.
    depth = max(grasp_height_m, 0.018)
    distance = float(np.hypot(*(tcp[:2] - position[:2])))
    height = depth + np.clip((distance - 0.010) * 2.5, 0.0, HOVER_M)
    if distance < NEAR_M and tcp[2] < depth + 0.006:
        return _towards(state, np.array([*position[:2], depth]), CLOSED)
    return _towards(state, np.array([*position[:2], height]), OPEN, slow_below_m=height)


def _carry(state: State, position: FloatArray, half_height_m: float) -> FloatArray:
    """Lift, move over the plate, lower, open."""
    tcp, target = state.tcp_position, state.target_position
    resting = target[2] + half_height_m + (tcp[2] - position[2]) + 0.002
    goal = target[:2] + (tcp[:2] - position[:2])
    distance = float(np.hypot(*(tcp[:2] - goal)))
    height = resting + np.clip((distance - 0.012) * 2.0, 0.0, CARRY_M)
    if distance < 0.016 and tcp[2] < resting + 0.008:
        return _towards(state, np.array([*goal, resting]), OPEN)
    return _towards(state, np.array([*goal, height]), CLOSED, slow_below_m=height)


def _towards(
    state: State, goal: FloatArray, gripper: float, slow_below_m: float | None = None
) -> FloatArray:
    """One bounded step to ``goal``; sideways only when the tool is high enough."""
    delta = goal - state.tcp_position
    if slow_below_m is not None and slow_below_m - state.tcp_position[2] > 0.02:
        delta[:2] *= 0.15
    length = float(np.linalg.norm(delta))
    delta *= min(1.0, MAX_STEP_M / max(length, 1e-9))
    w, x, y, z = state.tcp_quaternion
    turn = (_HOME_ROTATION * Rotation.from_quat([x, y, z, w]).inv()).as_rotvec()
    turn *= min(1.0, MAX_TURN_RAD / max(float(np.linalg.norm(turn)), 1e-9))
    if np.linalg.norm(turn) < 0.02:
        turn = np.zeros(3)
    return np.concatenate([delta, turn, [gripper]])
