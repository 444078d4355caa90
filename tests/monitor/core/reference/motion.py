"""Windowed motion metrics: A-*, TCP-*, TI (spec 2 to 4).

Sums are taken from left to right, as compiled code takes them, and not as numpy or ``sum`` may.
"""

from __future__ import annotations

from collections import deque
from math import sqrt
from typing import Final, final

import numpy as np

from monitor.metrics.instability import DIVISORS, instability, jerk_weights
from monitor.reading.actions import normalise
from monitor.records import Evidence, FloatArray, Numbers
from tests.monitor.core.reference.progress import added
from tests.monitor.core.reference.rotation import relative_rotation

ORDERS: Final = ("PI", "VI", "AI")
ACTION_IDS: Final = tuple((f"A-{o}", f"A-{o}_p", f"A-{o}_o") for o in ORDERS)
TCP_IDS: Final = tuple((f"TCP-{o}", f"TCP-{o}_p", f"TCP-{o}_o") for o in ORDERS)
IDS: Final = tuple(name for k in range(3) for name in (*ACTION_IDS[k], *TCP_IDS[k]))
POSE: Final = 6
"""Three position and three rotation components of the tool."""


@final
class Motion:
    """Differences of normalised actions, tool positions and tool rotations over the window.

    A step without an input is a hole: what depends on that input is unknown until the window has
    passed it.
    """

    def __init__(
        self, low: FloatArray, high: FloatArray, window: int, ti_dt_s: float, zeros: bool
    ) -> None:
        self._low, self._high = low, high
        self._space = np.stack((low, high, np.where(high > low, high - low, 1.0)))
        self._dim = len(low)
        self._window = window
        self._zeros = zeros
        width = self._dim + POSE
        self._absolute = np.zeros((window - 3, 3, width))
        self._row, self._last = np.zeros((3, width)), np.zeros((2, width))
        self._normal = np.zeros(self._dim)
        self._actions: deque[Numbers] = deque(maxlen=window)
        self._positions: deque[Numbers] = deque(maxlen=window)
        self._jerk: list[float] = (jerk_weights(window) / ti_dt_s**3).tolist()
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._slot = 0
        self._actions.clear()
        self._positions.clear()
        for state in (self._absolute, self._row, self._last, self._normal):
            state[:] = 0.0
        self._runs = [0, 0, 0]
        self._steps = 0
        self._last_position: Numbers | None = None
        self._last_quaternion: Numbers | None = None

    def update(self, evidence: Evidence, values: dict[str, float | None]) -> None:
        """Take one step in and write its metrics into ``values``."""
        row, runs, dim = self._row, self._runs, self._dim
        self._steps += 1
        if evidence.action is None:
            runs[0] = 0
            row[0, :dim] = 0.0
        else:
            low, high, span = self._space
            # Clipping first keeps huge values from overflowing; the result is the same.
            now = (np.minimum(np.maximum(evidence.action, low), high) - low) / span
            row[0, :dim] = now - self._normal
            self._normal = now
            self._actions.append(evidence.action)
            runs[0] += 1
        position, quaternion = evidence.tcp_position, evidence.tcp_quaternion
        if position is None:
            runs[1] = 0
        else:
            if self._last_position is not None:
                x, y, z = self._last_position
                row[0, dim] = position[0] - x
                row[0, dim + 1] = position[1] - y
                row[0, dim + 2] = position[2] - z
            self._positions.append(position)
            runs[1] += 1
        if quaternion is None:
            runs[2] = 0
        else:
            if self._last_quaternion is not None:
                x, y, z = relative_rotation(self._last_quaternion, quaternion)
                row[0, dim + 3], row[0, dim + 4], row[0, dim + 5] = x, y, z
            runs[2] += 1
        self._last_position, self._last_quaternion = position, quaternion
        # What stems from before a hole is wrong for W steps, and is not read before W steps.
        row[1] = row[0] - self._last[0]
        row[2] = row[1] - self._last[1]
        self._last[:] = row[:2]
        self._absolute[self._slot] = np.abs(row)
        self._slot = (self._slot + 1) % (self._window - 3)
        self._write(values)

    def _write(self, values: dict[str, float | None]) -> None:
        full, steps, dim = self._window, self._steps, self._dim
        action, place, turn = (run >= full for run in self._runs)
        # As published, the warm-up of an input that is there may count as calm; a hole never.
        blank = [0.0 if self._zeros and run == steps else None for run in self._runs]
        # numpy adds whole rows in their order.
        columns = self._absolute.sum(axis=0).tolist()
        for k, divisor in enumerate(DIVISORS):
            row = columns[k]

            def mean(
                begin: int, length: int, row: list[float] = row, divisor: float = divisor
            ) -> float:
                total = added(row[begin : begin + length])
                return total / ((self._window - 3) * length) / divisor

            for name, begin, end in zip(ACTION_IDS[k], (0, 0, 3), (dim, 3, 6), strict=True):
                # Parts that so short an action lacks stay None.
                known = mean(begin, end - begin) if action else blank[0]
                values[name] = known if end <= dim else None
            p = mean(dim, 3) if place else blank[1]
            o = mean(dim + 3, 3) if turn else blank[2]
            both = None if p is None or o is None else (p + o) / 2.0
            values.update(zip(TCP_IDS[k], (both, p, o), strict=True))
        warming = self._zeros and self._runs[1] == steps
        values["TI"] = self._jerkiness() if place else 0.0 if warming else None

    def _jerkiness(self) -> float:
        x = y = z = 0.0
        for weight, (px, py, pz) in zip(self._jerk, self._positions, strict=True):
            x += weight * px
            y += weight * py
            z += weight * pz
        return sqrt(x * x + y * y + z * z)

    def per_dimension(self) -> dict[str, Numbers]:
        """Return A-PI, A-VI and A-AI per action dimension; empty while unknown."""
        if self._runs[0] < self._window:
            return {}
        parts = instability(normalise(np.array(self._actions), self._low, self._high))
        return {
            names[0]: tuple(part.tolist()) for names, part in zip(ACTION_IDS, parts, strict=True)
        }
