"""The scenes of the WidowX's tasks: positions in metres in the base frame, table top at z = 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from envs.tabletop.scene import Scene, Shape, Spread, draw_scene

__all__ = ["PUT_IN", "PUT_ON", "SHAPES", "make_scene"]

SHAPES: Final[Mapping[str, Shape]] = MappingProxyType(
    {
        "cube": Shape(
            half_size_m=(0.015, 0.015, 0.015), round=False, max_yaw_rad=0.6, grasp_height_m=0.019
        ),
        "can": Shape(
            half_size_m=(0.014, 0.014, 0.026), round=True, max_yaw_rad=0.0, grasp_height_m=0.030
        ),
        "brick": Shape(
            half_size_m=(0.026, 0.012, 0.011), round=False, max_yaw_rad=0.25, grasp_height_m=0.018
        ),
    }
)
"""Every object that an instruction can name; a brick lies along the arm's forward axis."""

PUT_ON: Final = Spread(
    salt=20261130,
    phrase="put the {named} on the plate",
    shapes=SHAPES,
    source_x_m=(0.235, 0.375),
    source_y_m=(0.045, 0.165),
    object_gap_m=0.075,
    target_x_m=(0.245, 0.365),
    target_y_m=(-0.085, -0.020),
    target_gap_m=0.105,
)
"""Scenes of ``widowx-put-on``."""

PUT_IN: Final = replace(
    PUT_ON,
    salt=20261201,
    phrase="put the {named} in the basket",
    target_y_m=(-0.105, -0.045),
    target_gap_m=0.125,
)
"""Scenes of ``widowx-put-in``: a basket is wider than a plate."""


def make_scene(index: int, spread: Spread = PUT_ON) -> Scene:
    """Return scene ``index`` of a task.

    Args:
        index: any integer >= 0.
        spread: spread of the task; ``widowx-put-on`` by default.

    Raises:
        ValueError: if the index is negative.

    >>> make_scene(7) == make_scene(7)
    True
    >>> make_scene(7).instruction != make_scene(7).swapped().instruction
    True
    """
    return draw_scene(spread, index)
