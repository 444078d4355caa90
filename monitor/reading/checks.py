"""What the numbers of a step must fulfil; the readers of one robot and of N apply the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Final

__all__ = [
    "ACTION",
    "GOAL_DISTANCE",
    "GRIPPER",
    "LATENCY",
    "ORIENTATION",
    "POSITION",
    "UNIT_TOLERANCE",
    "Check",
]

FARTHEST_M: Final = 1e4
"""A position or distance beyond this comes from a broken sensor."""
UNIT_TOLERANCE: Final = 0.05
"""How far a quaternion's norm may be from 1; within it, the quaternion is normalised."""


@dataclass(frozen=True, slots=True)
class Check:
    """What the numbers of one field must fulfil.

    The fault is ``<kind>_SHAPE`` where they have another shape, ``NONFINITE_<kind>`` where any is
    NaN or infinite, and ``<kind>_RANGE`` where any is beyond the limits.

    Attributes:
        name: Name of the field in ``Step``.
        kind: Middle of the fault codes.
        low: Least value.
        high: Largest value.
        limited: Whether finite numbers may be out of range.
    """

    name: str
    kind: str
    low: float = -inf
    high: float = inf
    limited: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "limited", self.low > -inf or self.high < inf)


ACTION: Final = Check("action", "ACTION")
POSITION: Final = Check("tcp_position", "POSE", -FARTHEST_M, FARTHEST_M)
ORIENTATION: Final = Check("tcp_quaternion", "POSE")
GOAL_DISTANCE: Final = Check("goal_distance", "DISTANCE", 0.0, FARTHEST_M)
GRIPPER: Final = Check("gripper", "GRIPPER")
LATENCY: Final = Check("latency_s", "LATENCY_VALUE", 0.0)
