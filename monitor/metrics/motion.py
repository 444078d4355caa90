"""Windowed motion metrics of the monitor: A-*, TCP-*, TI (spec 2 to 4), in O(1) per step."""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import Any, Final, final

import numpy as np

from monitor.metrics.compiled import compile_for
from monitor.metrics.instability import DIVISORS, instability, jerk_weights
from monitor.metrics.rotation import relative_rotation
from monitor.metrics.samples import normalise
from monitor.records import Evidence, FloatArray, Numbers

ORDERS: Final = ("PI", "VI", "AI")
ACTION_IDS: Final = tuple((f"A-{o}", f"A-{o}_p", f"A-{o}_o") for o in ORDERS)
TCP_IDS: Final = tuple((f"TCP-{o}", f"TCP-{o}_p", f"TCP-{o}_o") for o in ORDERS)
IDS: Final = tuple(name for k in range(3) for name in (*ACTION_IDS[k], *TCP_IDS[k]))
POSE: Final = 6
"""Three position and three rotation components of the tool."""


def _means(dim: int, window: int) -> FloatArray:
    """Return what turns the window's sums of a row into the values of :data:`IDS`, ``(3 w, 18)``."""
    width = dim + POSE
    parts = (slice(dim), slice(3), slice(3, 6), slice(dim, width), slice(dim, dim + 3),
             slice(dim + 3, width))  # fmt: skip
    out = np.zeros((3, width, 3, len(parts)))
    for order, divisor in enumerate(DIVISORS):
        for i, part in enumerate(parts):
            length = len(range(*part.indices(width if i > 2 else dim)))
            if length:
                out[order, part, order, i] = 1.0 / (length * (window - 3) * divisor)
    return out.reshape(3 * width, -1)


def _advance(
    action: FloatArray, space: FloatArray, normal: FloatArray, row: FloatArray, last: FloatArray,
    absolute: FloatArray, slot: int, means: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Take one action in and write the means over the window; numba compiles it as it stands.

    Args:
        action: ``(D,)`` environment units.
        space: ``(3, D)`` low, high and span of the action space.
        normal: ``(D,)`` the action before, on [0, 1]; becomes this one.
        row: ``(3, w)`` first to third differences; the tool's first differences are there.
        last: ``(2, w)`` the first and second differences of the step before; become this one's.
        absolute: ``(W - 3, 3 w)`` absolute differences of the window's steps.
        slot: which of them is the oldest.
        means: see :func:`_means`.
        out: ``(18,)`` written to.
    """
    dim = len(action)
    # Clipping first keeps huge values from overflowing; the result is the same.
    now = (np.minimum(np.maximum(action, space[0]), space[1]) - space[0]) / space[2]
    row[0, :dim] = now - normal
    normal[:] = now
    row[1] = row[0] - last[0]
    row[2] = row[1] - last[1]
    last[:] = row[:2]
    absolute[slot] = np.abs(row).reshape(-1)
    out[:] = absolute.sum(axis=0) @ means


@cache
def _compiled() -> Any:
    two, one = "f8[:,::1]", "f8[::1]"
    kinds = (one, two, one, two, two, two, "i8", two, one)
    return compile_for(f"void({', '.join(kinds)})", _advance)


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
        self._means = _means(self._dim, window)
        self._absolute = np.zeros((window - 3, 3 * width))
        self._row, self._last = np.zeros((3, width)), np.zeros((2, width))
        self._normal, self._held = np.zeros((2, self._dim))
        self._out = np.zeros(len(IDS))
        self._actions: deque[Numbers] = deque(maxlen=window)
        self._positions: deque[Numbers] = deque(maxlen=window)
        self._jerk: list[float] = (jerk_weights(window) / ti_dt_s**3).tolist()
        _compiled()
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._slot = 0
        self._actions.clear()
        self._positions.clear()
        for state in (self._absolute, self._row, self._last, self._normal, self._held):
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
        else:
            self._held = np.array(evidence.action)
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
        (_compiled() or _advance)(
            self._held, self._space, self._normal, row, self._last, self._absolute, self._slot,
            self._means, self._out,
        )  # fmt: skip
        self._slot = (self._slot + 1) % (self._window - 3)
        self._write(values)

    def _write(self, values: dict[str, float | None]) -> None:
        full, steps = self._window, self._steps
        action, place, turn = (run >= full for run in self._runs)
        means: list[float] = self._out.tolist()
        if action and place and turn and self._dim >= POSE:
            values.update(zip(IDS, means, strict=True))
        else:
            # As published, the warm-up of an input that is there may count as calm; a hole never.
            blank = [0.0 if self._zeros and run == steps else None for run in self._runs]
            for k in range(3):
                a, ap, ao, _, p, o = means[6 * k : 6 * k + 6]
                self._write_known(k, (a, ap, ao) if action else None, blank[0], values)
                known = (p if place else blank[1], o if turn else blank[2])
                values.update(zip(TCP_IDS[k][1:], known, strict=True))
                there = [x for x in known if x is not None]
                values[TCP_IDS[k][0]] = sum(there) / 2.0 if len(there) == 2 else None
        warming = self._zeros and self._runs[1] == steps
        values["TI"] = self._jerkiness() if place else 0.0 if warming else None

    def _write_known(
        self,
        k: int,
        means: tuple[float, ...] | None,
        blank: float | None,
        values: dict[str, float | None],
    ) -> None:
        """Write the k-th order's action metrics; parts that so short an action lacks stay None."""
        for name, at, size in zip(ACTION_IDS[k], range(3), (1, 3, 6), strict=True):
            if means is None:
                values[name] = blank if self._dim >= size else None
            else:
                values[name] = means[at] if self._dim >= size else None

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
        parts = instability(normalise(np.array(self._actions), self._low, self._high))
        return {
            names[0]: tuple(part.tolist()) for names, part in zip(ACTION_IDS, parts, strict=True)
        }
