"""The shipped score: how far each signal is in the tail of successful rollouts.

Per signal: F(x) from a table of quantiles among the steps of successful rollouts, with an
exponential tail beyond its last level; surprise s = min(1, -log10(1 - F) / decades), so a median
gives 0.06, the 1 % tail 0.4, and one in 100,000 gives 1. The surprise is pooled by its peak over
the last W known values, and the signals are combined. A signal that goes unknown keeps its pooled
surprise, so missing data never lowers the score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import isnan, log, log10, nan
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from monitor.calibration import TailTable
from monitor.engine.passes import Call, Pass
from monitor.records import FloatArray
from monitor.stage import Matrix, MetricInfo, Setup, Vector, array, compiled

__all__ = ["SurpriseScorer", "reference_tables", "surprise_table"]


@dataclass(slots=True)
class Row:
    """The signals of one step, NaN where unknown, and whether the task has succeeded."""

    values: Vector = array("signals")
    succeeded: float = 0.0


@dataclass(slots=True)
class State:
    """Peak surprise by signal and the pool behind it.

    Attributes:
        pause: Steps for which signals of motion stay void after a retreat.
        peak: Peak surprise over the window, NaN while unknown.
        count: Values in the pool.
        oldest: Where the oldest value of a full pool stands.
        stale: 1 where the pool is to be emptied before the next value.
        pool: Surprise of the last known values.
    """

    pause: int = 0
    peak: Vector = array("signals")
    count: Vector = array("signals", start=0.0)
    oldest: Vector = array("signals", start=0.0)
    stale: Vector = array("signals", start=0.0)
    pool: Matrix = array("signals", "window", start=0.0)


@dataclass(slots=True)
class Limits:
    """How signals are combined, and what each one is.

    Attributes:
        largest: Whether the score is the largest peak.
        top_two: Whether it is the mean of the two largest; if neither, the weighted mean.
        weights: Weight by signal.
        muted: 1 where high values are right after a success.
        moved: 1 where a retreat makes the signal void.
        ends: End of each signal's table within the tables.
    """

    largest: bool = False
    top_two: bool = True
    weights: Vector = array("signals", start=1.0)
    muted: Vector = array("signals", start=0.0)
    moved: Vector = array("signals", start=0.0)
    ends: Vector = array("signals", start=0.0)


@dataclass(slots=True)
class Out:
    """The score, NaN while nothing is known."""

    score: float = nan


@compiled
def update(state: State, row: Row, out: Out, limits: Limits, tables: Vector) -> None:
    """Take one step; ``tables`` holds the values of all signals' tables, then knots, slopes."""
    paused = state.pause > 0
    if paused:
        state.pause -= 1
    begin = 0
    for j in range(len(row.values)):
        end, x = int(limits.ends[j]), row.values[j]
        muted = row.succeeded > 0.0 and limits.muted[j] > 0.0
        if muted or (paused and limits.moved[j] > 0.0):
            state.peak[j] = nan
        elif not isnan(x):
            state.peak[j] = _pooled(state, j, _surprise(tables, begin, end, x))
        begin = end
    out.score = _combined(state, limits)


@compiled
def _pooled(state: State, j: int, surprise: float) -> float:
    """Put a surprise into the pool of signal ``j`` and return the pool's peak."""
    if state.stale[j] > 0.0:
        state.stale[j] = state.count[j] = state.oldest[j] = 0.0
    pool, count, oldest = state.pool[j], int(state.count[j]), int(state.oldest[j])
    if count < len(pool):
        pool[count] = surprise
        count += 1
        state.count[j] = float(count)
    else:
        pool[oldest] = surprise
        state.oldest[j] = float((oldest + 1) % len(pool))
    top = pool[0]
    for k in range(1, count):
        top = pool[k] if pool[k] > top else top
    return top


@compiled
def _combined(state: State, limits: Limits) -> float:
    first = second = -1.0
    known, total, weight = 0, 0.0, 0.0
    for j in range(len(state.peak)):
        value = state.peak[j]
        if not isnan(value):
            known += 1
            total += limits.weights[j] * value
            weight += limits.weights[j]
            if value > first:
                first, second = value, first
            elif value > second:
                second = value
    if known == 0:
        return nan
    if limits.largest or (limits.top_two and known == 1):
        return first
    return (second + first) / 2.0 if limits.top_two else total / weight


@compiled
def _surprise(tables: Vector, begin: int, end: int, x: float) -> float:
    """Return the surprise of ``x``; its table's values stand from ``begin + 1`` on."""
    length = len(tables) // 3
    low, high = begin + 1, end
    while low < high:  # find the first value that is not below x
        middle = (low + high) // 2
        if tables[middle] < x:
            low = middle + 1
        else:
            high = middle
    # Each knot belongs to the value before it; the first stands for all below the table.
    knot = low - 1
    s = tables[length + knot]
    if knot > begin:
        s += (x - tables[knot]) * tables[2 * length + knot]
        s = 1.0 if s > 1.0 else s
    return s


def surprise_table(table: TailTable, decades: float) -> FloatArray:
    """Return ``(3, K)``: values, knots and slopes; the surprise is linear between two levels.

    The first value is never read. No slope is read across a step without width.

    >>> table = TailTable(levels=(0.0, 0.9), values=(0.0, 1.0), tail_scale=0.5)
    >>> surprise_table(table, 5.0).round(3).tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 0.2], [0.0, 0.2, 0.174]]
    """
    knots = [-log10(1.0 - level) / decades + 0.0 for level in table.levels]  # no -0.0
    steps = [b - a for a, b in pairwise(table.values)]
    rises = [b - a for a, b in pairwise(knots)]
    tail = 1.0 / (table.tail_scale * log(10.0) * decades)
    slopes = [r / step if step > 0.0 else 0.0 for r, step in zip(rises, steps, strict=True)]
    return np.array([[0.0, *table.values], [knots[0], *knots], [0.0, *slopes, tail]])


def reference_tables(metrics: Mapping[str, MetricInfo]) -> dict[str, TailTable]:
    """Return the tables used without a calibration, from each metric's ``typical`` values."""
    tables = {}
    for name, info in metrics.items():
        if info.typical is not None:
            median, ninety, one_percent = info.typical
            tables[name] = TailTable(
                levels=(0.0, 0.5, 0.9, 0.99),
                values=(0.0, median, ninety, one_percent),
                tail_scale=max((one_percent - ninety) / log(10.0), 1e-6),
            )
    return tables


@final
class SurpriseScorer:
    """Tail surprise per signal, pooled over the window, combined; see the module."""

    def __init__(self, setup: Setup, tables: Mapping[str, TailTable] | None, n: int) -> None:
        config, infos = setup.config.score, setup.metrics
        known = {**reference_tables(infos), **(tables or {})}
        weights = {name: w for name, w in config.signals.items() if w > 0.0 and name in known}
        self.signals: tuple[str, ...] = tuple(weights)
        self._window = setup.window
        self._moved = [name in infos and infos[name].of_motion for name in weights]
        muted = [name in infos and infos[name].right_after_success for name in weights]
        parts = [surprise_table(known[name], config.decades) for name in weights]
        whole = np.concatenate([*parts, np.zeros((3, 1))], axis=1)
        # Compiled code knows no empty array: without signals there is one that is never known.
        rest = [0.0] * (not weights)
        limits = Limits(
            largest=config.combine == "max",
            top_two=config.combine == "mean_top2",
            weights=[*weights.values(), *rest],
            muted=[*map(float, muted), *rest],
            moved=[*map(float, self._moved), *rest],
            ends=[*np.cumsum([part.shape[1] for part in parts]).astype(float).tolist(), *rest],
        )
        self._pass = Pass(
            [Call(name="surprise", function=update)],
            state=State,
            row=Row,
            out=Out,
            limits=limits,
            sizes={"signals": max(len(weights), 1), "window": setup.window},
            n=n,
            extras=(whole.reshape(-1),),
        )

    def update(self, values: FloatArray, succeeded: NDArray[np.float64]) -> FloatArray:
        """Take one step, ``(N, S)`` and ``(N,)``, and return the scores ``(N,)``."""
        rows = self._pass.rows
        if self.signals:
            rows["values"] = values
        rows["succeeded"] = succeeded
        return self._pass.update()[:, 0]

    def update_one(self, values: list[float], succeeded: float) -> float:
        """Take one step of a single robot: :meth:`update` without arrays."""
        return self._pass.update_one([*(values or [nan]), succeeded])[0]

    def reset(self, which: Any = None) -> None:
        """Begin an episode of some robots."""
        self._pass.reset(which)

    def forget_motion(self, which: Any) -> None:
        """Start the pools of the robot's own motion again after a retreat has moved it."""

        def forget(state: Any) -> None:
            state.pause = self._window
            for j, moved in enumerate(self._moved):
                if moved:
                    state.peak[j], state.count[j], state.oldest[j] = nan, 0.0, 0.0
                state.stale[j] = float(state.count[j] > 0.0)

        states = self._pass.records
        if states is None:
            self._pass.apply(forget, which)
            return
        chosen, moved_columns = states[which], np.flatnonzero(self._moved)
        chosen["pause"] = self._window
        chosen["peak"][:, moved_columns] = nan
        for name in ("count", "oldest"):
            chosen[name][:, moved_columns] = 0.0
        chosen["stale"] = chosen["count"] > 0.0
        states[which] = chosen

    def explain(self, robot: int) -> Mapping[str, float]:
        """Return the peak surprise over the window by signal."""
        peaks = [float(x) for x in self._pass.state(robot).peak]
        return {name: x for name, x in zip(self.signals, peaks, strict=False) if x == x}
