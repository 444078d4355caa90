"""Faults that are seen while one step is read."""

from __future__ import annotations

from typing import Any, final

from monitor.records import Fault

__all__ = ["Problems", "shape_of"]


@final
class Problems:
    """Collects the faults of one step.

    Attributes:
        index: Index of the step within its episode.
        found: The faults, in the order in which they were seen.
    """

    __slots__ = ("found", "index")

    def __init__(self, index: int) -> None:
        self.index = index
        self.found: list[Fault] = []

    def add(self, code: str, field: str, value: Any, **more: Any) -> None:
        """Add a fault.

        Args:
            code: Code of the fault.
            field: Field of ``Step`` that shows it.
            value: What was given, as JSON can hold it.
            **more: Further facts, such as what was expected.
        """
        text = "".join(f", {key} {item}" for key, item in more.items())
        self.found.append(
            Fault(
                code=code,
                message=f"step {self.index}: {field} is {value}{text}",
                detail={"step": self.index, "field": field, "value": value, **more},
            )
        )


def shape_of(value: Any) -> list[int] | str:
    """Return the shape of what was given, or the name of its type where it has no shape."""
    try:
        return [int(size) for size in value.shape]
    except Exception:  # not an array, or a foreign one with another kind of shape
        return type(value).__name__
