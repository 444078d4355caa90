"""Action and observation spaces as plain values, and back into gymnasium's if installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoxBounds", "plain_space", "read_space"]


@dataclass(frozen=True, slots=True, eq=False)
class BoxBounds:
    """A box where gymnasium is not installed: what the monitor and a policy read of one.

    Attributes:
        low: smallest values.
        high: largest values.
        dtype: type of the numbers.
    """

    low: NDArray[Any]
    high: NDArray[Any]
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of a value."""
        return self.low.shape

    def contains(self, value: Any) -> bool:
        """Whether a value has the shape and lies within the bounds."""
        given = np.asarray(value)
        within = given.shape == self.shape and bool(
            np.all(given >= self.low) and np.all(given <= self.high)
        )
        return within and np.can_cast(given.dtype, self.dtype)


def plain_space(space: Any) -> Any:
    """A space of any gym or gymnasium as plain values; of another kind only its text.

    Args:
        space: Box, Dict or Discrete of whatever package.
    """
    if hasattr(space, "low") and hasattr(space, "high") and hasattr(space, "dtype"):
        low, high = np.asarray(space.low), np.asarray(space.high)
        bounds = {name: _compact(end) for name, end in (("low", low), ("high", high))}
        return {"kind": "box", **bounds, "shape": low.shape, "dtype": np.dtype(space.dtype).str}
    if isinstance(getattr(space, "spaces", None), Mapping):
        items = {str(name): plain_space(one) for name, one in space.spaces.items()}
        return {"kind": "dict", "spaces": items}
    if type(space).__name__ == "Discrete":
        return {"kind": "discrete", "n": int(space.n), "start": int(getattr(space, "start", 0))}
    return {"kind": "other", "text": str(space)}


def read_space(plain: Mapping[str, Any]) -> Any:
    """The space that :func:`plain_space` described.

    Returns:
        gymnasium's; without gymnasium :class:`BoxBounds`, a dictionary, or a text.
    """
    kind = plain["kind"]
    try:
        from gymnasium import spaces
    except ModuleNotFoundError:
        spaces = None  # type: ignore[assignment]
    if kind == "box":
        dtype, shape = np.dtype(plain["dtype"]), tuple(plain["shape"])
        low, high = (np.broadcast_to(plain[end], shape).astype(dtype) for end in ("low", "high"))
        return spaces.Box(low, high, dtype=dtype.type) if spaces else BoxBounds(low, high, dtype)
    if kind == "dict":
        items = {name: read_space(one) for name, one in plain["spaces"].items()}
        if spaces and all(isinstance(one, spaces.Space) for one in items.values()):
            return spaces.Dict(items)
        return items
    if kind == "discrete" and spaces:
        return spaces.Discrete(plain["n"], start=plain["start"])
    return plain.get("text", f"Discrete({plain.get('n')})")


def _compact(end: NDArray[Any]) -> NDArray[Any]:
    """One number where all are alike: the bounds of an image need not cross pixel by pixel."""
    return end.reshape(-1)[:1] if end.size and bool((end == end.flat[0]).all()) else end
