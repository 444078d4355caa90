"""A scorer: the running mean of the token entropy.

In the monitor's configuration: ``score: {scorer: "mean_entropy:MeanEntropy"}``.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from monitor import TailTable
from monitor.stage import Setup


class MeanEntropy:
    """Averages TB-E over the episode; an unknown value leaves the mean as it is."""

    signals = ("TB-E",)

    def __init__(self, setup: Setup, tables: Mapping[str, TailTable] | None, n: int) -> None:
        self._total, self._count = np.zeros(n), np.zeros(n)

    def update(self, values: np.ndarray, succeeded: np.ndarray) -> np.ndarray:
        """Return ``(N,)`` scores of the ``(N, 1)`` values, NaN before the first known one."""
        entropy = values[:, 0]
        known = ~np.isnan(entropy)
        self._total[known] += entropy[known]
        self._count += known
        with np.errstate(invalid="ignore"):
            return self._total / self._count

    def reset(self, which: Any = None) -> None:
        """Begin an episode of some robots."""
        which = slice(None) if which is None else which
        self._total[which] = self._count[which] = 0.0

    def forget_motion(self, which: Any) -> None:
        """Keep everything: entropy is not a signal of the robot's own motion."""

    def explain(self, robot: int) -> Mapping[str, float]:
        """Return the mean."""
        count = self._count[robot]
        return {"TB-E": float(self._total[robot] / count)} if count else {}
