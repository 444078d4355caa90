"""Sums over rings, oldest first, whatever the compiler makes of it."""

from __future__ import annotations

from math import isnan, nan

from monitor.stage import Vector, compiled


@compiled
def path_of(lengths: Vector, oldest: int) -> float:
    """Return the sum of all lengths in a ring but the oldest.

    >>> path_of([1.0, 2.0, 4.0], 1)
    5.0
    """
    total, at = 0.0, oldest
    for _ in range(len(lengths) - 1):
        at = at + 1 if at + 1 < len(lengths) else 0
        total += lengths[at]
    return total


@compiled
def spread_of(values: Vector) -> float:
    """Return the largest minus the least known value, 0 where none is known.

    >>> spread_of([nan, 0.25, 1.0])
    0.75
    """
    low = high = nan
    for j in range(len(values)):
        x = values[j]
        if not isnan(x):
            low = x if isnan(low) or x < low else low
            high = x if isnan(high) or x > high else high
    return 0.0 if isnan(low) else high - low
