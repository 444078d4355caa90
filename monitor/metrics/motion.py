"""Windowed motion metrics of the monitor: A-*, TCP-*, TI (spec 2 to 4), in O(1) per step."""

from __future__ import annotations

from collections import deque
from typing import Final, final

import numpy as np

from monitor.metrics.instability import DIVISORS, instability, jerk_weights
from monitor.metrics.rotation import relative_rotation
from monitor.records import Evidence, FloatArray, Numbers
from monitor.ring import Ring

ORDERS: Final = ("PI", "VI", "AI")
ACTION_IDS: Final = tuple((f"A-{o}", f"A-{o}_p", f"A-{o}_o") for o in ORDERS)
TCP_IDS: Final = tuple((f"TCP-{o}", f"TCP-{o}_p", f"TCP-{o}_o") for o in ORDERS)
POSE: Final = 6
"""Three position and three rotation components of the tool."""


@final
class Motion:
    """Differences of normalised actions, tool positions and tool rotations over the window.

    One row per step holds the absolute first, second and third differences, summed over each
    part (position, orientation, the rest of the action; the tool's position and rotation). A
    step without an input is a hole: what depends on that input is unknown until the window has
    passed it.
    """

    def __init__(
        self, low: FloatArray, high: FloatArray, window: int, ti_dt_s: float, zeros: bool
    ) -> None:
        self._low = low
        self._high = high
        self._span = np.where(high > low, high - low, 1.0)
        self._dim = len(low)
        self._window = window
        self._unknown = 0.0 if zeros else None
        width = self._dim + POSE
        # Where each part begins, for each of the three orders.
        parts = [at for at in (0, 3, 6) if at < self._dim] + [self._dim, self._dim + 3]
        self._starts = np.array([k * width + at for k in range(3) for at in parts])
        self._parts = len(parts)
        self._rows = Ring(window - 3, 3 * self._parts)
        self._row = np.zeros(3 * width)
        self._last = np.zeros(2 * width)
        self._actions: deque[FloatArray] = deque(maxlen=window)
        self._last_action = np.zeros(self._dim)
        self._positions: deque[Numbers] = deque(maxlen=window)
        self._jerk: list[float] = (jerk_weights(window) / ti_dt_s**3).tolist()
        self._scales = [1.0 / ((window - 3) * divisor) for divisor in DIVISORS]
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._rows.clear()
        self._actions.clear()
        self._positions.clear()
        self._row[:] = 0.0
        self._last[:] = 0.0
        self._runs = [0, 0, 0]
        self._last_position: Numbers | None = None
        self._last_quaternion: Numbers | None = None

    def update(self, evidence: Evidence, values: dict[str, float | None]) -> None:
        """Take one step in and write its metrics into ``values``."""
        row, runs, dim = self._row, self._runs, self._dim
        width = dim + POSE
        if evidence.action is None:
            runs[0] = 0
        else:
            action = np.array(evidence.action)
            # Clipping first keeps huge values from overflowing; the result is the same.
            np.maximum(action, self._low, out=action)
            np.minimum(action, self._high, out=action)
            action -= self._low
            action /= self._span
            np.subtract(action, self._last_action, out=row[:dim])
            self._last_action = action
            self._actions.append(action)
            runs[0] += 1
        position, quaternion = evidence.tcp_position, evidence.tcp_quaternion
        if position is None:
            runs[1] = 0
        else:
            if self._last_position is not None:
                x, y, z = self._last_position
                row[dim] = position[0] - x
                row[dim + 1] = position[1] - y
                row[dim + 2] = position[2] - z
            self._positions.append(position)
            runs[1] += 1
        if quaternion is None:
            runs[2] = 0
        else:
            if self._last_quaternion is not None:
                row[dim + 3 : width] = relative_rotation(self._last_quaternion, quaternion)
            runs[2] += 1
        self._last_position, self._last_quaternion = position, quaternion
        # What stems from before a hole is wrong for W steps, and is not read before W steps.
        last = self._last
        np.subtract(row[:width], last[:width], out=row[width : 2 * width])
        np.subtract(row[width : 2 * width], last[width:], out=row[2 * width :])
        last[:] = row[: 2 * width]
        self._rows.push(np.add.reduceat(np.abs(row), self._starts))
        self._write(values)

    def _write(self, values: dict[str, float | None]) -> None:
        sums: list[float] = np.add.reduce(self._rows.view(), axis=0).tolist()
        dim, full, parts, unknown = self._dim, self._window, self._parts, self._unknown
        action, place, turn = (run >= full for run in self._runs)
        start = 0
        for (a, ap, ao), (t, tp, to), scale in zip(ACTION_IDS, TCP_IDS, self._scales, strict=True):
            end = start + parts
            if action:
                values[a] = sum(sums[start : end - 2]) * scale / dim
                values[ap] = sums[start] * scale / 3.0 if dim >= 3 else None
                values[ao] = sums[start + 1] * scale / 3.0 if dim >= 6 else None
            else:
                values[a] = values[ap] = values[ao] = unknown
            p = sums[end - 2] * scale / 3.0 if place else unknown
            o = sums[end - 1] * scale / 3.0 if turn else unknown
            values[tp], values[to] = p, o
            values[t] = (p + o) / 2.0 if p is not None and o is not None else None
            start = end
        if place:
            values["TI"] = self._jerkiness()
        else:
            values["TI"] = unknown

    def _jerkiness(self) -> float:
        x = y = z = 0.0
        for weight, (px, py, pz) in zip(self._jerk, self._positions, strict=True):
            x += weight * px
            y += weight * py
            z += weight * pz
        length: float = (x * x + y * y + z * z) ** 0.5
        return length

    def per_dimension(self) -> dict[str, Numbers]:
        """Return A-PI, A-VI and A-AI per action dimension; empty while unknown."""
        if self._runs[0] < self._window:
            return {}
        parts = instability(np.array(self._actions))
        return {
            names[0]: tuple(part.tolist()) for names, part in zip(ACTION_IDS, parts, strict=True)
        }
