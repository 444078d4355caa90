"""How far a task is from its end, in metres."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["goal_distance"]


def goal_distance(
    tcp: ArrayLike, obj: ArrayLike, goal: ArrayLike | None, *, grasped: bool, success: bool
) -> float:
    """Metres left by the phase of the task (docs/metrics.md, goal distance).

    Args:
        tcp: position of the tool, shape ``(3,)``, like the others.
        obj: position of the object.
        goal: position of its goal; None where it is to be picked only.
        grasped: the fingers hold the object.
        success: the object is where it should be.

    >>> goal_distance([0, 0, 0], [0, 0, 3], [4, 0, 3], grasped=False, success=False)
    7.0
    >>> goal_distance([0, 0, 0], [0, 0, 3], [4, 0, 3], grasped=True, success=False)
    5.0
    """
    tool, where = np.asarray(tcp, dtype=np.float64), np.asarray(obj, dtype=np.float64)
    to_object = float(np.linalg.norm(tool - where))
    if goal is None:
        return to_object
    end = np.asarray(goal, dtype=np.float64)
    to_goal = float(np.linalg.norm(where - end))
    if success:
        return to_goal
    return float(np.linalg.norm(tool - end)) if grasped else to_object + to_goal
