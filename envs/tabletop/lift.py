"""Goal: the object is held in the air."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from envs.tabletop.goal import Table

__all__ = ["Lift"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """Pick an object up.

    Attributes:
        rise_m: how far it must be above the height at which it stood.
    """

    rise_m: float
    kind: str = "pick"
    furniture: None = None
    origin_m: float = 0.0
    top_m: float = 0.0

    def build(self, scene: Any) -> None:
        """Nothing stands on the table but the objects."""

    def reached(self, table: Table, role: str, held: bool) -> bool:
        """It is held and has risen."""
        stood = table.rig.surface_m + table.table_scene.placements[role].body.half_size_m[2]
        height = (table.rig.base_pose.inv() * table.objects[role].pose.sp).p[2]
        return held and bool(height - stood > self.rise_m)
