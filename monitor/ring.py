"""Fixed-capacity history of rows, readable as one contiguous array without copying."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from monitor.records import FloatArray


@final
class Ring:
    """The last ``capacity`` rows of ``width`` numbers.

    Every row is written twice into a buffer of double length, so that the window is always one
    slice. Not thread-safe.

    >>> ring = Ring(2, 1)
    >>> for x in (1.0, 2.0, 3.0):
    ...     ring.push(x)
    >>> ring.view().tolist(), len(ring)
    ([[2.0], [3.0]], 2)
    """

    __slots__ = ("_at", "_buffer", "_capacity", "_count")

    def __init__(self, capacity: int, width: int) -> None:
        self._capacity = capacity
        self._buffer: FloatArray = np.zeros((2 * capacity, width))
        self._at = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def full(self) -> bool:
        """Whether the window holds ``capacity`` rows."""
        return self._count == self._capacity

    def push(self, row: FloatArray | Sequence[float] | float) -> None:
        """Copy ``row``, shape ``(width,)``, in; the oldest row falls out when full."""
        at = self._at
        self._buffer[at] = row
        self._buffer[at + self._capacity] = row
        self._at = at + 1 if at + 1 < self._capacity else 0
        if self._count < self._capacity:
            self._count += 1

    def view(self) -> FloatArray:
        """Return the rows from oldest to newest, ``(len, width)``; valid until the next push."""
        end = self._at + self._capacity
        return self._buffer[end - self._count : end]

    def clear(self) -> None:
        """Forget all rows."""
        self._at = self._count = 0
