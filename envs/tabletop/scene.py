"""What stands on a table: a scene is a pure function of its index.

The same index is the same scene in every run and on every machine, so that two evaluations can be
compared pair by pair. Positions are metres in the robot's base frame (x forward, y left); heights
are counted from the table top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["COLOURS", "UNSEEN_COLOUR", "Placement", "Scene", "Shape", "Spread", "draw_scene"]

Colour = tuple[float, float, float]
Range = tuple[float, float]

COLOURS: Final[Mapping[str, Colour]] = MappingProxyType(
    {
        "red": (0.75, 0.05, 0.05),
        "green": (0.05, 0.50, 0.15),
        "blue": (0.05, 0.15, 0.75),
        "yellow": (0.85, 0.70, 0.05),
    }
)
"""Linear RGB of the colours used in training and in clean scenes."""

UNSEEN_COLOUR: Final = ("purple", (0.40, 0.05, 0.55))
"""A colour that no policy of this project was trained on."""

SAME_COLOUR_SHARE: Final = 0.2
"""Share of scenes whose two objects differ in shape alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A kind of object.

    Attributes:
        half_size_m: half extents (x, y, z) in metres; for a can the first two are its radius.
        round: True for an upright cylinder, False for a box.
        max_yaw_rad: largest rotation about the vertical in which it is placed.
        grasp_height_m: height of the tool centre point above the table when it is grasped.
        density_kg_m3: mass by volume.
    """

    half_size_m: tuple[float, float, float]
    round: bool
    max_yaw_rad: float
    grasp_height_m: float
    density_kg_m3: float = 800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One object and where it starts.

    Attributes:
        colour: colour as named in instructions.
        shape: shape as named in instructions.
        body: size of that shape.
        rgb: linear RGB.
        xy_m: position in the base frame.
        yaw_rad: rotation about the vertical.
    """

    colour: str
    shape: str
    body: Shape
    rgb: Colour
    xy_m: Range
    yaw_rad: float

    @property
    def name(self) -> str:
        """What an instruction calls it, for example ``red cube``."""
        return f"{self.colour} {self.shape}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The start of an episode: the object that the instruction names, another one, and the goal.

    Attributes:
        index: index of the scene.
        phrase: the instruction, with ``{named}`` and ``{goal}`` where the objects' names go.
        named: the object that the instruction wants moved.
        other: another object.
        target_xy_m: position of the goal; None where the object is to be picked up only.
        goal: the object that is the goal, where the goal is an object and no furniture.
    """

    index: int
    phrase: str
    named: Placement
    other: Placement
    target_xy_m: Range | None
    goal: Placement | None = None

    @property
    def instruction(self) -> str:
        """The sentence that the policy gets."""
        goal = self.goal.name if self.goal else ""
        return self.phrase.format(named=self.named.name, goal=goal)

    @property
    def placements(self) -> dict[str, Placement]:
        """Objects by the part they play."""
        roles = {"named": self.named, "other": self.other}
        return {**roles, "goal": self.goal} if self.goal else roles

    def swapped(self) -> Scene:
        """The same table with the instruction naming the other object."""
        return replace(self, named=self.other, other=self.named)

    def recoloured(self, name: str, rgb: Colour) -> Scene:
        """The same table with the named object in another colour, and named so."""
        return replace(self, named=replace(self.named, colour=name, rgb=rgb))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How the scenes of a task are drawn.

    Attributes:
        salt: first word of every scene's seed; changing it changes all scenes.
        phrase: wording, see :class:`Scene`.
        shapes: every object that an instruction can name.
        source_x_m: where the two objects stand.
        source_y_m: the same along y.
        object_gap_m: least distance of their centres.
        target_x_m: where the goal stands; None where there is none.
        target_y_m: the same along y.
        target_gap_m: least distance of an object from the goal.
        path_gap_m: least distance of the other object from the straight way of the named one.
        goal_is_object: the goal is a third object, named by the instruction.
    """

    salt: int
    phrase: str
    shapes: Mapping[str, Shape]
    source_x_m: Range
    source_y_m: Range
    object_gap_m: float
    target_x_m: Range | None = None
    target_y_m: Range = (0.0, 0.0)
    target_gap_m: float = 0.0
    path_gap_m: float = 0.0
    goal_is_object: bool = False


def draw_scene(spread: Spread, index: int) -> Scene:
    """Return scene ``index`` of a task.

    Args:
        spread: spread of the task.
        index: any integer >= 0.

    Raises:
        ValueError: if the index is negative.
    """
    if index < 0:
        msg = f"scene index {index} is negative; scenes are numbered from 0"
        raise ValueError(msg)
    rng = np.random.default_rng([spread.salt, index])
    kinds = _kinds(rng, list(spread.shapes))
    xy, target = _places(rng, spread)

    def place(kind: tuple[str, str], at: NDArray[np.float64]) -> Placement:
        colour, shape = kind
        body = spread.shapes[shape]
        return Placement(
            colour=colour,
            shape=shape,
            body=body,
            rgb=COLOURS[colour],
            xy_m=(float(at[0]), float(at[1])),
            yaw_rad=float(rng.uniform(-1.0, 1.0) * body.max_yaw_rad),
        )

    named, other = (place(kind, at) for kind, at in zip(kinds, xy, strict=True))
    goal = None
    if spread.goal_is_object and target is not None:
        goal = place(_third(rng, kinds, list(spread.shapes)), target)
    return Scene(
        index=index,
        phrase=spread.phrase,
        named=named,
        other=other,
        target_xy_m=None if target is None else (float(target[0]), float(target[1])),
        goal=goal,
    )


def _places(
    rng: np.random.Generator, spread: Spread
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Places of the two objects, shape ``(2, 2)``, and of the goal, far enough from each other."""
    while True:
        xy = np.stack(
            [rng.uniform(*spread.source_x_m, size=2), rng.uniform(*spread.source_y_m, size=2)],
            axis=1,
        )
        apart = np.linalg.norm(xy[0] - xy[1]) >= spread.object_gap_m
        if spread.target_x_m is None:
            if apart:
                return xy, None
            continue
        target = np.array([rng.uniform(*spread.target_x_m), rng.uniform(*spread.target_y_m)])
        if not apart or np.linalg.norm(xy - target, axis=1).min() < spread.target_gap_m:
            continue
        if _off_path(xy[0], target, xy[1]) >= spread.path_gap_m:
            return xy, target


def _off_path(
    start: NDArray[np.float64], end: NDArray[np.float64], point: NDArray[np.float64]
) -> float:
    """Distance of a point from the straight way between two others, metres."""
    way = end - start
    share = np.clip((point - start) @ way / (way @ way), 0.0, 1.0)
    return float(np.linalg.norm(point - start - share * way))


def _kinds(rng: np.random.Generator, shapes: list[str]) -> tuple[tuple[str, str], tuple[str, str]]:
    """Draw two (colour, shape) kinds that differ in colour, or sometimes in shape alone."""
    colours = list(COLOURS)
    if rng.random() < SAME_COLOUR_SHARE:
        colour = colours[rng.integers(len(colours))]
        first, second = rng.choice(len(shapes), size=2, replace=False)
        return (colour, shapes[first]), (colour, shapes[second])
    one, two = rng.choice(len(colours), size=2, replace=False)
    return (
        (colours[one], shapes[rng.integers(len(shapes))]),
        (colours[two], shapes[rng.integers(len(shapes))]),
    )


def _third(
    rng: np.random.Generator, taken: Sequence[tuple[str, str]], shapes: list[str]
) -> tuple[str, str]:
    """Draw a kind that is none of those taken."""
    free = [(colour, shape) for colour in COLOURS for shape in shapes]
    free = [kind for kind in free if kind not in taken]
    return free[rng.integers(len(free))]
