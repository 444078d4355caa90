"""What stands on the table: a scene is a pure function of its index.

The same index is the same scene in every run and on every machine, so that two evaluations can be
compared pair by pair. Positions are metres in the robot's base frame (x forward, y left, z up,
table top at z = 0).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

__all__ = ["COLOURS", "SHAPES", "UNSEEN_COLOUR", "Placement", "Scene", "Shape", "make_scene"]

_SALT: Final = 20261130
"""First word of every scene's seed; changing it changes all scenes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A kind of object.

    Attributes:
        half_size_m: half extents (x, y, z) in metres; for a can the first two are its radius.
        round: True for an upright cylinder, False for a box.
        max_yaw_rad: largest rotation about the vertical in which it is placed.
        grasp_height_m: height of the tool centre point above the table when it is grasped.
    """

    half_size_m: tuple[float, float, float]
    round: bool
    max_yaw_rad: float
    grasp_height_m: float


SHAPES: Final[dict[str, Shape]] = {
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
"""Every object that an instruction can name; a brick lies along the arm's forward axis."""

COLOURS: Final[dict[str, tuple[float, float, float]]] = {
    "red": (0.75, 0.05, 0.05),
    "green": (0.05, 0.50, 0.15),
    "blue": (0.05, 0.15, 0.75),
    "yellow": (0.85, 0.70, 0.05),
}
"""Linear RGB of the colours used in training and in clean scenes."""

UNSEEN_COLOUR: Final = ("purple", (0.40, 0.05, 0.55))
"""A colour that no policy of this project was trained on."""

SOURCE_X_M: Final = (0.235, 0.375)
SOURCE_Y_M: Final = (0.045, 0.165)
TARGET_X_M: Final = (0.245, 0.365)
TARGET_Y_M: Final = (-0.085, -0.020)
MIN_OBJECT_GAP_M: Final = 0.075
MIN_TARGET_GAP_M: Final = 0.105
SAME_COLOUR_SHARE: Final = 0.2
"""Share of scenes whose two objects differ in shape alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One object and where it starts."""

    colour: str
    shape: str
    rgb: tuple[float, float, float]
    xy_m: tuple[float, float]
    yaw_rad: float

    @property
    def name(self) -> str:
        """What an instruction calls it, for example ``red cube``."""
        return f"{self.colour} {self.shape}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The start of an episode: the object that the instruction names, another one, and the target."""

    index: int
    named: Placement
    other: Placement
    target_xy_m: tuple[float, float]

    @property
    def instruction(self) -> str:
        """The sentence that the policy gets."""
        return f"put the {self.named.name} on the plate"

    def swapped(self) -> Scene:
        """The same table with the instruction naming the other object."""
        return replace(self, named=self.other, other=self.named)

    def recoloured(self, name: str, rgb: tuple[float, float, float]) -> Scene:
        """The same table with the named object in another colour, and named so."""
        return replace(self, named=replace(self.named, colour=name, rgb=rgb))


def _kinds(rng: np.random.Generator) -> tuple[tuple[str, str], tuple[str, str]]:
    """Draw two (colour, shape) kinds that differ in colour, or sometimes in shape alone."""
    colours, shapes = list(COLOURS), list(SHAPES)
    if rng.random() < SAME_COLOUR_SHARE:
        colour = colours[rng.integers(len(colours))]
        first, second = rng.choice(len(shapes), size=2, replace=False)
        return (colour, shapes[first]), (colour, shapes[second])
    one, two = rng.choice(len(colours), size=2, replace=False)
    return (
        (colours[one], shapes[rng.integers(len(shapes))]),
        (colours[two], shapes[rng.integers(len(shapes))]),
    )


def make_scene(index: int) -> Scene:
    """Return scene ``index``.

    Args:
        index: any integer >= 0.

    Raises:
        ValueError: if the index is negative.

    >>> make_scene(7) == make_scene(7)
    True
    >>> make_scene(7).instruction != make_scene(7).swapped().instruction
    True
    """
    if index < 0:
        msg = f"scene index {index} is negative; scenes are numbered from 0"
        raise ValueError(msg)
    rng = np.random.default_rng([_SALT, index])
    kinds = _kinds(rng)
    while True:
        xy = np.stack([rng.uniform(*SOURCE_X_M, size=2), rng.uniform(*SOURCE_Y_M, size=2)], axis=1)
        target = np.array([rng.uniform(*TARGET_X_M), rng.uniform(*TARGET_Y_M)])
        apart = np.linalg.norm(xy[0] - xy[1]) >= MIN_OBJECT_GAP_M
        if apart and np.linalg.norm(xy - target, axis=1).min() >= MIN_TARGET_GAP_M:
            break
    placements = [
        Placement(
            colour=colour,
            shape=shape,
            rgb=COLOURS[colour],
            xy_m=(float(xy[i, 0]), float(xy[i, 1])),
            yaw_rad=float(rng.uniform(-1.0, 1.0) * SHAPES[shape].max_yaw_rad),
        )
        for i, (colour, shape) in enumerate(kinds)
    ]
    return Scene(
        index=index,
        named=placements[0],
        other=placements[1],
        target_xy_m=(float(target[0]), float(target[1])),
    )
