"""Rules and peaks of N environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np

from monitor.config import Rule
from monitor.records import FloatArray
from monitor.vector.history import Ints, Mask, OwnPace


@final
class VectorPeaks:
    """As :class:`monitor.metrics.pooling.Peaks`, with NaN for unknown."""

    def __init__(self, names: tuple[str, ...], window: int, n: int) -> None:
        self._pools = {name: OwnPace(window, n) for name in names}

    def reset(self, which: Mask) -> None:
        """Begin an episode in some environments."""
        for pool in self._pools.values():
            pool.clear(which)

    def update(self, values: dict[str, FloatArray]) -> None:
        """Take the values of one step in and write the peaks among them."""
        for name, pool in self._pools.items():
            if name in values:
                pool.push(values[name])
            values[f"{name}_peak"] = np.fmax.reduce(pool.rows, axis=0)


@final
class VectorRule:
    """As :class:`monitor.faults.rules.RuleCount`."""

    def __init__(self, rule: Rule, n: int) -> None:
        self.rule = rule
        self._count: Ints = np.zeros(n, dtype=np.int64)

    def reset(self, which: Mask) -> None:
        """Begin an episode in some environments."""
        self._count[which] = 0

    def holds(self, values: Mapping[str, FloatArray], faults: Mapping[str, Mask]) -> Mask:
        """Take one step in and tell where the rule fires."""
        met, unknown = np.zeros((2, len(self._count)), dtype=np.int64)
        for term in self.rule.of:
            if term.fault is not None:
                met += faults.get(term.fault, False)
            elif term.metric is not None and term.above is not None:
                value = values.get(term.metric)
                if value is None:
                    unknown += 1
                else:
                    met += value > term.above
                    unknown += np.isnan(value)
        total, when = len(self.rule.of), self.rule.when
        need = total if when == "all" else 1 if when == "any" else when
        self._count[met >= need] += 1
        self._count[met + unknown < need] = 0
        fires: Mask = self._count >= self.rule.steps
        return fires
