"""Histories of N environments, each at its own pace."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from monitor.records import FloatArray

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]


@final
class OwnPace:
    """The last ``capacity`` known values of each environment; NaN where there are fewer."""

    def __init__(self, capacity: int, count: int) -> None:
        self.rows: FloatArray = np.full((capacity, count), np.nan)
        self._at: Ints = np.zeros(count, dtype=np.int64)
        self._envs = np.arange(count)

    def push(self, values: FloatArray) -> None:
        """Take the values in that are no NaN."""
        known = ~np.isnan(values)
        if known.all():
            self.rows[self._at, self._envs] = values
            self._at += 1
        else:
            self.rows[self._at[known], self._envs[known]] = values[known]
            self._at[known] += 1
        self._at[self._at == len(self.rows)] = 0

    def clear(self, which: Mask) -> None:
        """Forget the values of some environments."""
        self.rows[:, which] = np.nan
        self._at[which] = 0
