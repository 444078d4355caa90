"""What a command asks of the gripper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from monitor.config import GripperConfig
from monitor.records import FloatArray

__all__ = ["GripperCommands"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GripperCommands:
    """How a robot's gripper is told.

    Attributes:
        index: of its number in the action.
        opens: value that opens it.
        closes: value that closes it.
        relative: whether the number is a change of the opening; half-way then asks for nothing.
    """

    index: int
    opens: float
    closes: float
    relative: bool = False

    @classmethod
    def of(cls, config: GripperConfig) -> GripperCommands:
        """Return what the configuration says."""
        return cls(
            index=config.index,
            opens=config.open,
            closes=config.close,
            relative=config.relative,
        )

    def column(self, dim: int) -> int:
        """Return which of ``dim`` numbers tells the gripper, -1 where there is no such one.

        >>> told = GripperCommands(index=-1, opens=1.0, closes=-1.0)
        >>> told.column(7), GripperCommands(index=6, opens=1.0, closes=-1.0).column(3)
        (6, -1)
        """
        return self.index % dim if -dim <= self.index < dim else -1

    def closing(self, grip: float, before: float | None) -> bool | None:
        """Return whether ``grip`` asks to close (True), to open (False) or for nothing new (None).

        A number near the half-way, by less than a quarter of the span, is no end; as an absolute
        command it asks for the side to which it has moved by at least that.

        Args:
            grip: commanded now.
            before: the last command that asked for something, None without one.

        >>> told = GripperCommands(index=6, opens=1.0, closes=-1.0)
        >>> told.closing(-1.0, None), told.closing(0.0, 1.0), told.closing(0.0, 0.0)
        (True, True, None)
        """
        quarter = abs(self.opens - self.closes) / 4.0
        half = (self.opens + self.closes) / 2.0
        if abs(grip - half) >= quarter:
            return abs(grip - self.closes) < abs(grip - self.opens)
        if self.relative or before is None or abs(grip - before) < quarter:
            return None
        return (grip - before) * (self.closes - self.opens) > 0.0

    def closing_each(self, grip: FloatArray, before: FloatArray) -> FloatArray:
        """Return :meth:`closing` of N commands: 1.0, 0.0 or NaN; NaN in means unknown.

        >>> told = GripperCommands(index=6, opens=-1.0, closes=1.0, relative=True)
        >>> told.closing_each(np.array([1.0, 0.0, np.nan]), np.full(3, -1.0)).tolist()
        [1.0, nan, nan]
        """
        quarter = abs(self.opens - self.closes) / 4.0
        half = (self.opens + self.closes) / 2.0
        end = np.abs(grip - half) >= quarter
        nearest: Any = np.abs(grip - self.closes) < np.abs(grip - self.opens)
        moved: Any = np.abs(grip - before) >= quarter
        toward: Any = (grip - before) * (self.closes - self.opens) > 0.0
        told = np.where(end, nearest, toward).astype(np.float64)
        said = end if self.relative else end | moved
        return np.where(said, told, np.nan)
