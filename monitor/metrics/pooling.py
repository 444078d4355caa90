"""Peak over the window of any metric: a short spike that a mean would dilute.

After Shifting Uncertainty to Critical Moments, arXiv 2603.18342.
"""

from __future__ import annotations

from collections import deque
from typing import final


@final
class Peaks:
    """``<id>_peak``: largest of the last W known values of each chosen metric."""

    def __init__(self, names: tuple[str, ...], window: int) -> None:
        self._names = names
        self._window = window
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._pools: dict[str, deque[float]] = {n: deque(maxlen=self._window) for n in self._names}

    def update(self, values: dict[str, float | None]) -> None:
        """Take the values of one step in and write the peaks among them."""
        for name, pool in self._pools.items():
            value = values.get(name)
            if value is not None:
                pool.append(value)
            values[f"{name}_peak"] = max(pool) if pool else None
