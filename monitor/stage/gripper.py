"""What a number of the action asks of the gripper."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan

from monitor.config import GripperConfig
from monitor.stage.compiled import compiled

__all__ = ["GripperCommands", "closing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GripperCommands:
    """How a robot's gripper is commanded.

    Attributes:
        index: Index of the gripper's number in the action; negative counts from the end.
        opens: Value that opens it.
        closes: Value that closes it.
        relative: Whether the number is a change of the opening; half-way then asks for nothing.
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
        """Return which of ``dim`` numbers commands the gripper, -1 where none does.

        >>> commands = GripperCommands(index=-1, opens=1.0, closes=-1.0)
        >>> commands.column(7), GripperCommands(index=6, opens=1.0, closes=-1.0).column(3)
        (6, -1)
        """
        return self.index % dim if -dim <= self.index < dim else -1


@compiled
def closing(command: float, before: float, opens: float, closes: float, relative: bool) -> float:
    """Return 1 where a command asks to close, 0 to open, NaN where it asks for nothing new.

    A number nearer to the half-way than a quarter of the span is neither end; as an absolute
    command it asks for the side to which it has moved by at least that.

    Args:
        command: The gripper's number now.
        before: The last command that asked for something, NaN without one.
        opens: Value that opens.
        closes: Value that closes.
        relative: Whether commands are changes of the opening.

    >>> closing(-1.0, nan, 1.0, -1.0, False), closing(0.0, 1.0, 1.0, -1.0, False)
    (1.0, 1.0)
    >>> closing(0.0, 0.0, 1.0, -1.0, False)
    nan
    """
    quarter, half = abs(opens - closes) / 4.0, (opens + closes) / 2.0
    if abs(command - half) >= quarter:
        return 1.0 if abs(command - closes) < abs(command - opens) else 0.0
    if relative or isnan(before) or abs(command - before) < quarter:
        return nan
    return 1.0 if (command - before) * (closes - opens) > 0.0 else 0.0
