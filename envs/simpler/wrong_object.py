"""Whether another object is where the named one should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from envs.base import FloatArray
from envs.simpler.drawer import OPEN_M
from envs.simpler.tasks import Kind

__all__ = ["wrong_object"]

MOVED_M: Final = 0.03
"""Way from which SimplerEnv takes an object for moved (``move_near_in_scene.py``)."""
NEAR_M: Final = 0.10
"""Gap between two objects that still counts as near (the same file)."""
_RIM_M: Final = 0.003


def wrong_object(
    kind: Kind,
    sim: Any,
    others: Mapping[str, FloatArray],
    begun: Mapping[str, FloatArray],
    distractors: Sequence[Any],
) -> bool | None:
    """Another object is in the fingers, near the target, or on it; another drawer is open.

    Args:
        kind: kind of the task.
        sim: SimplerEnv's environment.
        others: poses in the world of objects that are neither the named one nor its target.
        begun: poses by name at the start of the episode.
        distractors: bodies that were added to the scene.

    Returns:
        None where there is no other object, or the task is to close a drawer or to fill it.
    """
    if kind is Kind.OPEN_DRAWER:
        ways_m = np.delete(np.asarray(sim.art_obj.get_qpos(), dtype=np.float64), sim.joint_idx)
        return bool((ways_m >= OPEN_M).any())
    if not others or kind in (Kind.CLOSE_DRAWER, Kind.PUT_IN_DRAWER):
        return None
    if kind is Kind.PICK:
        return any(bool(sim.agent.check_grasp(body)) for body in distractors)
    target = np.asarray(sim.target_obj_pose.p, dtype=np.float64)
    reach_m = _half_m(sim.episode_target_obj_bbox_world)
    # The bounds that SimplerEnv sets for the named object hold for the others too.
    reach_m += NEAR_M + _half_m(sim.episode_source_obj_bbox_world) if _near(kind) else _RIM_M
    return any(
        np.linalg.norm(pose[:2] - begun[name][:2]) > MOVED_M
        and np.linalg.norm(pose[:2] - target[:2]) < reach_m
        and (_near(kind) or pose[2] > target[2])
        for name, pose in others.items()
        if name in begun
    )


def _near(kind: Kind) -> bool:
    return kind is Kind.MOVE_NEAR


def _half_m(box: Any) -> float:
    """Half the diagonal of a bounding box in the plane, metres."""
    return float(np.linalg.norm(np.asarray(box, dtype=np.float64)[:2])) / 2
