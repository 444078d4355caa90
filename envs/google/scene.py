"""The scenes of the Google Robot's tasks: positions in metres in its base frame."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from envs.tabletop.scene import Shape, Spread

__all__ = ["MOVE_NEAR", "PICK", "SHAPES"]

SHAPES: Final[Mapping[str, Shape]] = MappingProxyType(
    {
        "can": Shape(
            half_size_m=(0.026, 0.026, 0.047),
            round=True,
            max_yaw_rad=0.0,
            grasp_height_m=0.068,
            density_kg_m3=300.0,
        ),
        "cup": Shape(
            half_size_m=(0.029, 0.029, 0.038),
            round=True,
            max_yaw_rad=0.0,
            grasp_height_m=0.058,
            density_kg_m3=300.0,
        ),
    }
)
"""Every object that an instruction can name.

The hand comes in tilted and tilts what it holds by up to 19 degrees: they are tall enough and
broad enough to right themselves when they are put down.
"""

PICK: Final = Spread(
    salt=20261202,
    phrase="pick the {named}",
    shapes=SHAPES,
    source_x_m=(0.51, 0.645),
    source_y_m=(-0.10, 0.12),
    object_gap_m=0.13,
)
"""Scenes of ``google-pick``."""

MOVE_NEAR: Final = Spread(
    salt=20261203,
    phrase="move the {named} near the {goal}",
    shapes=SHAPES,
    source_x_m=(0.51, 0.645),
    source_y_m=(0.04, 0.17),
    object_gap_m=0.13,
    target_x_m=(0.51, 0.645),
    target_y_m=(-0.16, -0.10),
    target_gap_m=0.17,
    path_gap_m=0.12,
    goal_is_object=True,
)
"""Scenes of ``google-move-near``."""
