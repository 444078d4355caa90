"""A scripted expert for the Google Robot on privileged state: a pure function of what is there now.

The hand keeps the slant that it starts with: straight down the wrist meets its limit.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from scipy.spatial.transform import Rotation

from envs.base import FloatArray
from envs.google.rig import SURFACE_M
from envs.tabletop.pick_place import ScriptedPickPlace, target_of

__all__ = ["expert_action"]

LIFT_M: Final = 0.05
"""How high things are lifted: the arm reaches little higher with its hand aslant."""
GAP_M: Final = 0.03
"""Distance, rim to rim, at which an object is put down to the left of another, whence it came."""
_PICK_PLACE: Final = ScriptedPickPlace(
    grip=-1.0,
    upright=Rotation.from_quat([-0.6033321, 0.78076738, -0.03428813, 0.1587992]),
    surface_m=SURFACE_M,
    clearance_m=0.05,
    max_step_m=0.05,
    max_turn_rad=0.25,
    near_m=0.008,
    above_m=0.012,
    hover_m=0.10,
    carry_m=LIFT_M,
    drop_m=0.003,
    from_aim=True,
)


def expert_action(env: Any, target: str = "named") -> FloatArray:
    """The action that brings the named (or the other) object nearer to the goal.

    Args:
        env: an environment of :mod:`envs.google`, in any state.
        target: ``"named"`` for the object that the instruction names, ``"other"`` for the other.

    Returns:
        Action in the environment's units, shape ``(7,)``.

    Raises:
        ValueError: if ``target`` is neither.
    """
    obj, state, scene = target_of(env, target), env.unwrapped.state, env.unwrapped.scene
    tcp = state.tcp_position
    if not obj.grasped and not obj.placed:
        return _PICK_PLACE.fetch(state, obj)
    lifted = SURFACE_M + obj.grasp_height_m + LIFT_M
    if state.target_position is None:
        return _PICK_PLACE.towards(state, np.array([*tcp[:2], lifted]), -_PICK_PLACE.grip)
    if obj.placed:
        return _PICK_PLACE.towards(state, np.array([*tcp[:2], lifted + LIFT_M]), _PICK_PLACE.grip)
    own = scene.named if target == "named" else scene.other
    rims = own.body.half_size_m[0] + scene.goal.body.half_size_m[0]
    x, y = state.target_position[:2]
    return _PICK_PLACE.carry(state, obj, np.array([x, y + rims + GAP_M, SURFACE_M]))
