"""``<id>_peak``: largest value over the window of any metric, a short spike that a mean dilutes.

After Shifting Uncertainty to Critical Moments, arXiv 2603.18342.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from monitor.records import FloatArray


@final
class Peaks:
    """The largest of the last W known values of each chosen metric, for N robots.

    >>> peaks = Peaks(("TI",), window=2, n=1)
    >>> [peaks.update("TI", np.array([x])).item() for x in (3.0, 1.0, 2.0)]
    [3.0, 3.0, 2.0]
    """

    def __init__(self, names: tuple[str, ...], window: int, n: int) -> None:
        self.names = names
        self._pools: FloatArray = np.full((len(names), window, n), np.nan)
        self._next: NDArray[np.int64] = np.zeros((len(names), n), dtype=np.int64)
        self._robots = np.arange(n)

    def reset(self, which: Any = None) -> None:
        """Begin an episode of the robots in a mask or index array; None means all."""
        which = slice(None) if which is None else which
        self._pools[:, :, which] = np.nan
        self._next[:, which] = 0

    def update(self, name: str, values: FloatArray) -> FloatArray:
        """Take the values ``(N,)`` of one metric, NaN where unknown, and return its peaks."""
        k = self.names.index(name)
        pool, at = self._pools[k], self._next[k]
        known = ~np.isnan(values)
        pool[at[known], self._robots[known]] = values[known]
        at[known] = (at[known] + 1) % len(pool)
        peaks: FloatArray = np.fmax.reduce(pool, axis=0)
        return peaks
