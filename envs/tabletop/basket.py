"""Goal: the object lies in an open basket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import sapien
import sapien.render

from envs.tabletop.goal import Table
from envs.tabletop.touch import touching

__all__ = ["Basket"]

INSIDE_HALF_M: Final = 0.055
WALL_HALF_M: Final = 0.003
WALL_HEIGHT_M: Final = 0.035
FLOOR_HALF_M: Final = 0.003


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Basket:
    """Put an object into a basket: a square floor and four walls; its origin is in the floor."""

    kind: str = "put-in"
    furniture: str = "basket"
    origin_m: float = FLOOR_HALF_M
    top_m: float = FLOOR_HALF_M

    def build(self, scene: Any) -> Any:
        """Five boxes that are one body."""
        builder = scene.create_actor_builder()
        friction = sapien.physx.PhysxMaterial(0.6, 0.6, 0.0)
        material = sapien.render.RenderMaterial(base_color=[0.80, 0.45, 0.10, 1.0], roughness=0.8)
        outside = INSIDE_HALF_M + 2 * WALL_HALF_M
        middle = INSIDE_HALF_M + WALL_HALF_M
        height = FLOOR_HALF_M + WALL_HEIGHT_M / 2
        boxes = [([0.0, 0.0, 0.0], [outside, outside, FLOOR_HALF_M])]
        for side in (-1.0, 1.0):
            across = [INSIDE_HALF_M, WALL_HALF_M, WALL_HEIGHT_M / 2]
            along = [WALL_HALF_M, outside, WALL_HEIGHT_M / 2]
            boxes += [([0.0, side * middle, height], across), ([side * middle, 0.0, height], along)]
        for centre, half_size in boxes:
            pose = sapien.Pose(centre)
            builder.add_box_collision(pose, half_size, material=friction, density=1500)
            builder.add_box_visual(pose, half_size, material=material)
        builder.initial_pose = sapien.Pose([1.5, 0.0, 1.0])
        return builder.build(self.furniture)

    def reached(self, table: Table, role: str, held: bool) -> bool:
        """It touches the basket from within the walls and is let go."""
        obj, basket = table.objects[role], table.furniture
        offset = (basket.pose.sp.inv() * obj.pose.sp).p
        inside = bool(np.abs(offset[:2]).max() < INSIDE_HALF_M)
        sunk = bool(0.0 < offset[2] < FLOOR_HALF_M + WALL_HEIGHT_M)
        return inside and sunk and touching(table.scene, obj, basket) and not held
