"""The online score: how far into the tail of successful rollouts each signal is (spec 10).

Per signal: F(x) from a table of quantiles among the steps of successful rollouts, an exponential
tail beyond its last level, surprise s = min(1, -log10(1 - F) / decades) (a median gives 0.06, the
1 % tail 0.4, one in 100,000 gives 1). The surprise is pooled by
its peak over the last W known values and the signals are combined. A signal that goes unknown
keeps its pooled surprise: what cannot be seen does not calm.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scoring:
    """What the score is made of.

    Attributes:
        surprises: by signal, in the configuration's order.
        weights: of the same; none is zero.
        combine: "max", "mean_top2" or "weights".
    """

    surprises: Mapping[str, Surprise]
    weights: Mapping[str, float]
    combine: str

    @classmethod
    def of(cls, config: ScoreConfig, tables: Mapping[str, TailTable] | None) -> Scoring:
        """Return what the configuration asks for, a calibration's tables over the shipped ones."""
        known = REFERENCE if tables is None else {**REFERENCE, **tables}
        weights = {name: w for name, w in config.signals.items() if w > 0.0 and name in known}
        surprises = {name: Surprise(known[name], config.decades) for name in weights}
        return cls(surprises=surprises, weights=weights, combine=config.combine)
