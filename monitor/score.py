"""The online score: how far into the tail of successful rollouts each signal is (spec 10).

Per signal: F(x) from a table of quantiles among the steps of successful rollouts, an exponential
tail beyond its last level, surprise s = min(1, -log10(1 - F) / decades) (a median gives 0.06, the
1 % tail 0.4, one in 100,000 gives 1). The surprise is pooled by
its peak over the last W known values and the signals are combined. A signal that goes unknown
keeps its pooled surprise: what cannot be seen does not calm.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import log, log10
from types import MappingProxyType
from typing import Final, final

import numpy as np

from monitor.calibration import TailTable
from monitor.config import ScoreConfig
from monitor.records import FloatArray


def _table(median: float, ninety: float, one_percent: float) -> TailTable:
    return TailTable(
        levels=(0.0, 0.5, 0.9, 0.99),
        values=(0.0, median, ninety, one_percent),
        tail_scale=max((one_percent - ninety) / log(10.0), 1e-6),
    )


REFERENCE: Final[Mapping[str, TailTable]] = MappingProxyType(
    {
        **{f"TB-E{part}": _table(0.06, 0.20, 0.35) for part in ("", "_max", "_bins", "_bins_max")},
        **{f"TB-TP{part}": _table(0.15, 0.45, 0.65) for part in ("", "_max", "_bins", "_bins_max")},
        **{f"TB-D{part}": _table(0.15, 0.45, 0.65) for part in ("", "_max", "_bins", "_bins_max")},
        **{f"TB-PCS{part}": _table(0.25, 0.6, 0.8) for part in ("", "_max", "_bins", "_bins_max")},
        **{f"A-PI{part}": _table(0.05, 0.12, 0.2) for part in ("", "_p", "_o")},
        **{f"A-VI{part}": _table(0.04, 0.10, 0.16) for part in ("", "_p", "_o")},
        **{f"A-AI{part}": _table(0.04, 0.09, 0.15) for part in ("", "_p", "_o")},
        **{f"TCP-PI{part}": _table(0.015, 0.03, 0.05) for part in ("", "_p", "_o")},
        **{f"TCP-VI{part}": _table(0.004, 0.009, 0.014) for part in ("", "_p", "_o")},
        **{f"TCP-AI{part}": _table(0.003, 0.007, 0.011) for part in ("", "_p", "_o")},
        "TI": _table(0.004, 0.012, 0.02),
        "REV": _table(0.10, 0.25, 0.40),
        "STILL": _table(0.08, 0.30, 0.60),
        "PROG": _table(0.15, 0.50, 0.80),
        "NIS": _table(0.45, 3.0, 8.0),
        "EV": _table(0.02, 0.06, 0.12),
        "CHUNK": _table(0.02, 0.06, 0.12),
    }
)
"""Rough shapes of healthy tabletop pick-and-place at 5 Hz, for use without a calibration; chosen
by hand, wide on purpose, no promise about false alarms."""


MUTED: Final = frozenset({"STILL", "PROG"})
"""After a success, standing still and getting nowhere are right."""
WINDOWED: Final = frozenset({"STILL", "PROG", "REV", "TI", "NIS"})
"""With A-* and TCP-*: signals of the robot's own motion, void after a retreat moved it."""


def moved_signals(names: Iterable[str]) -> frozenset[str]:
    """Return those of some signals that a retreat makes void.

    >>> sorted(moved_signals(["TB-E", "NIS", "A-AI"]))
    ['A-AI', 'NIS']
    """
    own = (name for name in names if name in WINDOWED or name.startswith(("A-", "TCP-")))
    return frozenset(own)


@final
class Surprise:
    """A tail table made quick: value -> surprise in [0, 1].

    Between two levels the surprise itself is interpolated, so it rises in straight pieces.
    """

    __slots__ = ("_knots", "_slopes", "_values")

    def __init__(self, table: TailTable, decades: float) -> None:
        self._values = table.values
        knots = [-log10(1.0 - level) / decades + 0.0 for level in table.levels]  # no -0.0
        steps = [b - a for a, b in pairwise(table.values)]
        rises = [b - a for a, b in pairwise(knots)]
        self._knots = [knots[0], *knots]
        tail = 1.0 / (table.tail_scale * log(10.0) * decades)
        # No slope is read across a step of no width: bisect never lands inside it.
        slopes = [
            rise / step if step > 0.0 else 0.0 for rise, step in zip(rises, steps, strict=True)
        ]
        self._slopes = [0.0, *slopes, tail]

    @property
    def tables(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values, knots and slopes, for arrays of signals."""
        return np.array(self._values), np.array(self._knots), np.array(self._slopes)

    def __call__(self, x: float) -> float:
        """Return the surprise of ``x``."""
        i = bisect_left(self._values, x)
        if i == 0:
            return self._knots[0]
        s = self._knots[i] + (x - self._values[i - 1]) * self._slopes[i]
        return s if s < 1.0 else 1.0


def combine(pooled: Mapping[str, float], weights: Mapping[str, float], how: str) -> float | None:
    """Return the score of the known signals' surprises, None where nothing is known.

    >>> combine({"a": 0.8, "b": 0.4, "c": 0.0}, {}, "mean_top2")
    0.6000000000000001
    """
    if not pooled:
        return None
    if how == "max":
        return max(pooled.values())
    if how == "mean_top2":
        top = sorted(pooled.values())[-2:]
        return sum(top) / len(top)
    # In the weights' order, whatever came first, and from left to right: the same on every Python.
    total = weight = 0.0
    for name, w in weights.items():
        if name in pooled:
            total += w * pooled[name]
            weight += w
    return total / weight


@final
class Score:
    """The online score of one episode."""

    def __init__(
        self, config: ScoreConfig, window: int, tables: Mapping[str, TailTable] | None
    ) -> None:
        known = REFERENCE if tables is None else {**REFERENCE, **tables}
        self._weights = {name: w for name, w in config.signals.items() if w > 0.0 and name in known}
        self._surprise = {name: Surprise(known[name], config.decades) for name in self._weights}
        self._how = config.combine
        self._window = window
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._pools: dict[str, deque[float]] = {
            name: deque(maxlen=self._window) for name in self._weights
        }
        self._stale: set[str] = set()
        self._moved: frozenset[str] = frozenset()
        self._pause = 0
        self._pooled: dict[str, float] = {}

    def forget(self, moved: frozenset[str]) -> None:
        """Start the pools afresh after a retreat.

        Args:
            moved: signals whose window now holds the retreat's own motion; they are left out
                until the window has passed it. The others keep their peak until they are seen
                again.
        """
        for name in moved & self._pools.keys():
            self._pools[name].clear()
            self._pooled.pop(name, None)
        self._moved = moved
        self._pause = self._window
        self._stale = {name for name, pool in self._pools.items() if pool}

    def update(
        self, values: Mapping[str, float | None], muted: frozenset[str] = frozenset()
    ) -> float | None:
        """Take the metrics of one step in and return the score.

        Args:
            values: by metric id.
            muted: signals that mean nothing now; unlike the unknown they do not linger.
        """
        if self._pause:
            self._pause -= 1
            muted |= self._moved
        pooled, stale, pools = self._pooled, self._stale, self._pools
        for name, surprise in self._surprise.items():
            x = values.get(name)
            if muted and name in muted:
                pooled.pop(name, None)
                continue
            if x is None:
                continue
            pool = pools[name]
            if stale and name in stale:
                pool.clear()
                stale.discard(name)
            s = surprise(x)
            top = pooled.get(name) if pool else None
            leaving = pool[0] if len(pool) == self._window else None
            pool.append(s)
            # The largest is looked for again only where it may just have fallen out.
            if top is None or top == leaving:
                pooled[name] = max(pool)
            elif s > top:
                pooled[name] = s
        return combine(pooled, self._weights, self._how)

    @property
    def parts(self) -> tuple[Mapping[str, Surprise], Mapping[str, float], str]:
        """Tail tables by signal, weights by signal, and how they are combined."""
        return self._surprise, self._weights, self._how

    @property
    def pooled(self) -> Mapping[str, float]:
        """Peak surprise over the window by signal, for explanation."""
        return dict(self._pooled)
