"""Scripted pick and place: a pure function of what is on the table now.

It has no memory and no stages to restart, so it can label any state that a learner or a recovery
gets into. The tool may descend only as far as it is centred above its goal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from envs.base import FloatArray
from envs.tabletop.state import State

__all__ = ["GraspTarget", "ScriptedPickPlace", "target_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraspTarget:
    """The object that is to be moved, as it is now.

    Attributes:
        position: position of its centre, shape ``(3,)``.
        half_height_m: half of its height.
        grasp_height_m: height of the tool over the table at which it is grasped.
        grasped: the fingers hold it.
        placed: it is where it should be.
    """

    position: FloatArray
    half_height_m: float
    grasp_height_m: float
    grasped: bool
    placed: bool


def target_of(env: Any, target: str) -> GraspTarget:
    """Return what the expert needs to know about the named or the other object.

    Args:
        env: a :class:`envs.tabletop.env.TabletopEnv`, in any state.
        target: ``"named"`` for the object that the instruction names, ``"other"`` for the other.

    Raises:
        ValueError: if ``target`` is neither.
    """
    state, scene = env.unwrapped.state, env.unwrapped.scene
    if target not in ("named", "other"):
        msg = f"target must be 'named' or 'other', got {target!r}"
        raise ValueError(msg)
    named = target == "named"
    body = (scene.named if named else scene.other).body
    return GraspTarget(
        position=state.named_position if named else state.other_position,
        half_height_m=body.half_size_m[2],
        grasp_height_m=body.grasp_height_m,
        grasped=state.grasped if named else state.other_grasped,
        placed=state.placed if named else state.other_placed,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScriptedPickPlace:
    """How an arm handles objects.

    Attributes:
        grip: gripper number that opens the fingers; its negative closes them.
        upright: orientation of the tool at work.
        surface_m: height of the table in the base frame.
        clearance_m: least height of the tool over the table.
        max_step_m: largest translation per step.
        max_turn_rad: largest rotation per step.
        near_m: distance to the object's axis at which the fingers close.
        above_m: height over the grasp at which they do.
        hover_m: height over the grasp from which the tool comes down.
        carry_m: height over the resting position at which an object is carried.
        drop_m: height over the resting position at which an object is let go.
        from_aim: steps start where the controller wants the tool and not where it is: for an arm
            that lags far behind.
    """

    grip: float
    upright: Rotation
    surface_m: float
    clearance_m: float
    max_step_m: float
    max_turn_rad: float
    near_m: float
    above_m: float
    hover_m: float
    carry_m: float
    drop_m: float
    from_aim: bool

    def fetch(self, state: State, obj: GraspTarget) -> FloatArray:
        """Come down over the object with open fingers, then close them."""
        tcp, position = state.tcp_position, obj.position
        # A tipped or raised object is grasped where it is, never below the table's clearance.
        depth = self.surface_m + max(obj.grasp_height_m, self.clearance_m)
        distance = float(np.hypot(*(tcp[:2] - position[:2])))
        height = depth + np.clip((distance - 0.010) * 2.5, 0.0, self.hover_m)
        if distance < self.near_m and tcp[2] < depth + self.above_m:
            return self.towards(state, np.array([*position[:2], depth]), -self.grip)
        return self.towards(
            state, np.array([*position[:2], height]), self.grip, keep_above_m=height
        )

    def carry(self, state: State, obj: GraspTarget, target: FloatArray) -> FloatArray:
        """Lift, move over the position where the object is to rest, lower, open.

        Args:
            state: what is true now.
            obj: the object in the fingers.
            target: where its bottom shall rest, shape ``(3,)``.
        """
        tcp, position = state.tcp_position, obj.position
        resting = target[2] + obj.half_height_m + (tcp[2] - position[2]) + self.drop_m
        goal = target[:2] + (tcp[:2] - position[:2])
        distance = float(np.hypot(*(tcp[:2] - goal)))
        height = resting + np.clip((distance - 0.012) * 2.0, 0.0, self.carry_m)
        if distance < 0.016 and tcp[2] < resting + 0.008:
            return self.towards(state, np.array([*goal, resting]), self.grip)
        return self.towards(state, np.array([*goal, height]), -self.grip, keep_above_m=height)

    def towards(
        self, state: State, goal: FloatArray, gripper: float, keep_above_m: float | None = None
    ) -> FloatArray:
        """One bounded step to ``goal``; sideways only when the tool is high enough."""
        start = state.aim_position if self.from_aim else state.tcp_position
        delta = goal - start
        if self.from_aim:
            left = goal - state.tcp_position
            # What gravity keeps the arm from is added where the aim is reached and the tool is not.
            if np.linalg.norm(delta) < 0.003 and np.linalg.norm(left) > 0.004:
                delta = delta + 0.6 * left
        if keep_above_m is not None and keep_above_m - state.tcp_position[2] > 0.02:
            delta[:2] *= 0.15
        length = float(np.linalg.norm(delta))
        delta *= min(1.0, self.max_step_m / max(length, 1e-9))
        w, x, y, z = state.aim_quaternion if self.from_aim else state.tcp_quaternion
        rotvec = (self.upright * Rotation.from_quat([x, y, z, w]).inv()).as_rotvec()
        rotvec *= min(1.0, self.max_turn_rad / max(float(np.linalg.norm(rotvec)), 1e-9))
        if np.linalg.norm(rotvec) < 0.02:
            rotvec = np.zeros(3)
        return np.concatenate([delta, rotvec, [gripper]])
