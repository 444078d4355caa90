"""Goal: the object lies on a plate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import sapien
import sapien.render

from envs.tabletop.goal import Table
from envs.tabletop.touch import touching

__all__ = ["Plate"]

RADIUS_M: Final = 0.06
HALF_HEIGHT_M: Final = 0.004
# sapien's cylinders lie along x; this rotation stands them up.
_UPRIGHT: Final = sapien.Pose(q=[0.70710678, 0.0, 0.70710678, 0.0])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plate:
    """Put an object on a plate."""

    kind: str = "put-on"
    furniture: str = "plate"
    origin_m: float = HALF_HEIGHT_M
    top_m: float = HALF_HEIGHT_M

    def build(self, scene: Any) -> Any:
        """A flat disc."""
        builder = scene.create_actor_builder()
        friction = sapien.physx.PhysxMaterial(0.6, 0.6, 0.0)
        material = sapien.render.RenderMaterial(base_color=[0.85, 0.85, 0.82, 1.0], roughness=0.7)
        size = {"radius": RADIUS_M, "half_length": HALF_HEIGHT_M}
        builder.add_cylinder_collision(_UPRIGHT, **size, material=friction, density=800)
        builder.add_cylinder_visual(_UPRIGHT, **size, material=material)
        builder.initial_pose = sapien.Pose([1.5, 0.0, 1.0])
        return builder.build(self.furniture)

    def reached(self, table: Table, role: str, held: bool) -> bool:
        """It touches the plate from above and is let go."""
        obj, plate = table.objects[role], table.furniture
        offset = obj.pose.sp.p - plate.pose.sp.p
        height = offset[2] - HALF_HEIGHT_M
        inside = bool(np.hypot(offset[0], offset[1]) < RADIUS_M)
        highest = max(table.table_scene.placements[role].body.half_size_m) + 0.015
        on_plate = inside and touching(table.scene, obj, plate) and 0.0 < height < highest
        return bool(on_plate) and not held
