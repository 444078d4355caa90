"""What an expert knows of a table now (privileged); metres in the robot base frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.base import FloatArray
from envs.pose import between, pose7, rotation_matrix

__all__ = ["Block", "State", "read_block", "read_state"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """An object as the box around it.

    Attributes:
        centre: middle of the box, shape ``(3,)``.
        half_height: half of its height as it lies now.
        axis_rad: direction of its longer horizontal side about z, from the base's x axis.
        square: both horizontal sides are about as long.
    """

    centre: FloatArray
    half_height: float
    axis_rad: float
    square: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """The tool and the two objects.

    Attributes:
        tcp_position: measured, shape ``(3,)``.
        aim: pose that the arm's controller is on its way to, shape ``(7,)``.
        obj: object to be moved.
        target: object that it is to be moved to.
        grasped: the fingers hold the object.
        success: the task is solved now.
    """

    tcp_position: FloatArray
    aim: FloatArray
    obj: Block
    target: Block
    grasped: bool
    success: bool


def read_state(sim: Any, *, grasped: bool, success: bool) -> State:
    """The state of a WidowX task with a source and a target object.

    Args:
        sim: SimplerEnv's environment.
        grasped: whether the last step reported a grasp.
        success: likewise.
    """
    base = pose7(sim.agent.robot.pose)
    sizes = dict(zip(sim.episode_model_ids, sim.episode_model_scales, strict=True))
    source, target = sim.episode_source_obj, sim.episode_target_obj
    return State(
        tcp_position=between(base, pose7(sim.tcp.pose))[:3],
        aim=pose7(sim.agent.controller.controllers["arm"]._target_pose),
        obj=read_block(sim, base, source, sizes[source.name]),
        target=read_block(sim, base, target, sizes[target.name]),
        grasped=grasped,
        success=success,
    )


def read_block(sim: Any, base: FloatArray, body: Any, scale: float) -> Block:
    """An object as the box that SimplerEnv's table of models has for it.

    Args:
        sim: SimplerEnv's environment.
        base: pose of the robot's base in the world, shape ``(7,)``.
        body: the object.
        scale: size of the object in the scene; 1 is that of its model.
    """
    pose = between(base, pose7(body.pose))
    box = sim.model_db[body.name]["bbox"]
    low, high = (np.asarray(box[end]) * scale for end in ("min", "max"))
    axes = rotation_matrix(pose[3:])
    size = high - low
    flat = [np.hypot(*axes[:2, k]) * size[k] for k in range(3)]
    longest, other = np.argsort(flat)[::-1][:2]
    return Block(
        centre=pose[:3] + axes @ ((low + high) / 2),
        half_height=float(np.abs(axes[2]) @ size) / 2,
        axis_rad=float(np.arctan2(axes[1, longest], axes[0, longest])),
        square=bool(flat[other] > 0.8 * flat[longest]),
    )
