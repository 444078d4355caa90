"""What a scorer is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from monitor.records import FloatArray


class Scorer(Protocol):
    """Turns the metrics of N robots into one score each; a single robot is N = 1.

    A scorer is built as ``Scorer(setup, tables, n)``: the :class:`monitor.stage.Setup`, the tail
    tables of the calibration by signal (None without one), and N. It must be picklable.
    """

    signals: tuple[str, ...]
    """Ids of the metrics that it reads, in the order of their columns."""

    def update(self, values: FloatArray, succeeded: NDArray[np.float64]) -> FloatArray:
        """Take one step and return the scores ``(N,)``, NaN while unknown.

        Args:
            values: ``(N, S)`` metrics by signal, NaN where unknown.
            succeeded: ``(N,)`` 1 where the task has succeeded in this episode.
        """

    def reset(self, which: Any = None) -> None:
        """Begin an episode of the robots in a mask or index array; None means all."""

    def forget_motion(self, which: Any) -> None:
        """Forget what signals of the robot's own motion have said, after a retreat moved it."""

    def explain(self, robot: int) -> Mapping[str, float]:
        """Return what the score of a robot is made of, by signal."""
