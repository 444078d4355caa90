"""A scripted expert for the WidowX on privileged state: a pure function of what is there now."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from scipy.spatial.transform import Rotation

from envs.base import FloatArray
from envs.tabletop.pick_place import ScriptedPickPlace, target_of

__all__ = ["expert_action"]

REST_HEIGHT_M: Final = 0.15
"""Height of the tool when the work is done."""
_PICK_PLACE: Final = {
    kind: ScriptedPickPlace(
        grip=1.0,
        # The tool points straight down, its fingers close along the base's y axis.
        upright=Rotation.from_quat([0.0, 0.7071068, 0.0, 0.7071068]),
        surface_m=0.0,
        clearance_m=0.018,
        max_step_m=0.03,
        max_turn_rad=0.2,
        near_m=0.007,
        above_m=0.006,
        hover_m=0.075,
        carry_m=carry_m,
        drop_m=drop_m,
        from_aim=False,
    )
    for kind, carry_m, drop_m in (("put-on", 0.065, 0.002), ("put-in", 0.075, 0.012))
}
"""How it is done, by kind of task; into a basket things go higher and are dropped."""


def expert_action(env: Any, target: str = "named") -> FloatArray:
    """The action that brings the named (or the other) object nearer to the goal.

    Args:
        env: an environment of :mod:`envs.widowx`, in any state.
        target: ``"named"`` for the object that the instruction names, ``"other"`` for the other.

    Returns:
        Action in the environment's units, shape ``(7,)``.

    Raises:
        ValueError: if ``target`` is neither.
    """
    obj, state = target_of(env, target), env.unwrapped.state
    pick_place = _PICK_PLACE[env.unwrapped.task]
    if obj.placed:
        return pick_place.towards(
            state, np.array([*state.tcp_position[:2], REST_HEIGHT_M]), pick_place.grip
        )
    if obj.grasped:
        return pick_place.carry(state, obj, state.target_position)
    return pick_place.fetch(state, obj)
