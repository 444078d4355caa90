"""Goal: the object stands near another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from envs.pose import rotation_matrix
from envs.tabletop.goal import Table

__all__ = ["Near"]

_RESTING_M: Final = 0.01
"""An object whose middle is this much higher than where it stood is still in the air."""
_UPRIGHT: Final = 0.95
"""Cosine of the lean from which an object has fallen over."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Move an object near another.

    Attributes:
        gap_m: largest distance between the two, rim to rim.
    """

    gap_m: float
    kind: str = "move-near"
    furniture: None = None
    origin_m: float = 0.0
    top_m: float = 0.0

    def build(self, scene: Any) -> None:
        """The goal is one of the scene's objects."""

    def reached(self, table: Table, role: str, held: bool) -> bool:
        """It stands near the goal, on the table, and is let go."""
        bodies = [table.table_scene.placements[part].body for part in (role, "goal")]
        obj, goal = (table.objects[part].pose.sp.p for part in (role, "goal"))
        rims = sum(body.half_size_m[0] for body in bodies)
        gap = float(np.hypot(*(obj[:2] - goal[:2]))) - rims
        stood = table.rig.base_pose.p[2] + table.rig.surface_m + bodies[0].half_size_m[2]
        upright = rotation_matrix(table.objects[role].pose.sp.q)[2, 2] > _UPRIGHT
        standing = bool(upright and abs(obj[2] - stood) < _RESTING_M)
        return gap < self.gap_m and standing and not held
