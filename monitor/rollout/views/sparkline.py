"""Curves in one line of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["sparkline", "squeeze"]

BLOCKS: Final = "▁▂▃▄▅▆▇█"
UNKNOWN: Final = "·"


def squeeze(values: Sequence[float | None], width: int) -> list[float | None]:
    """Shorten a curve to at most ``width`` points, each the maximum of its share.

    A mean would hide the peaks, which matter most.

    Example:
        >>> squeeze([1.0, 5.0, None, 2.0], 2)
        [5.0, 2.0]
    """
    count = len(values)
    if count <= width:
        return list(values)
    shortened: list[float | None] = []
    for column in range(width):
        share = values[column * count // width : (column + 1) * count // width]
        known = [value for value in share if value is not None]
        shortened.append(max(known) if known else None)
    return shortened


def sparkline(
    values: Sequence[float | None], *, width: int, low: float = 0.0, high: float | None = None
) -> str:
    """Draw a curve with block characters.

    Args:
        values: points in order; None where unknown.
        width: largest number of characters.
        low: value of the lowest block.
        high: value of the highest block; None for the largest value.

    Example:
        >>> sparkline([None, 0.0, 0.5, 1.0], width=4, high=1.0)
        '·▁▅█'
    """
    points = squeeze(values, width)
    known = [value for value in points if value is not None]
    top = high if high is not None else max(known, default=low)
    span = top - low
    drawn = []
    for value in points:
        if value is None:
            drawn.append(UNKNOWN)
            continue
        share = (value - low) / span if span > 0 else 0.0
        drawn.append(BLOCKS[min(len(BLOCKS) - 1, max(0, int(share * len(BLOCKS))))])
    return "".join(drawn)
