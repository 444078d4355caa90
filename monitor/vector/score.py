"""Score and controller of N environments."""

from __future__ import annotations

from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from monitor.controller import Limits
from monitor.records import FloatArray
from monitor.score import Score, Surprise
from monitor.vector.history import Ints, Mask, OwnPace

TASK, RECOVER, HALT = 0, 1, 2
NONE, ASK_RECOVER, ASK_HALT = 0, 1, 2
LEVELS: Final = {"ignore": NONE, "alert": NONE, "recover": ASK_RECOVER, "halt": ASK_HALT}
"""Demand by response."""


def surprises(surprise: Surprise, x: FloatArray) -> FloatArray:
    """Return the surprise of each of ``x``, NaN for NaN."""
    values, knots, slopes = surprise.tables
    i = np.searchsorted(values, x)
    i[np.isnan(x)] = 0
    anchors = np.concatenate([values[:1], values])
    s = np.where(i == 0, knots[0], np.minimum(knots[i] + (x - anchors[i]) * slopes[i], 1.0))
    return np.where(np.isnan(x), np.nan, s)


@final
class VectorScore:
    """As :class:`monitor.score.Score`."""

    def __init__(self, single: Score, window: int, n: int) -> None:
        self._surprise, self._weights, self._how = single.parts
        self._window = window
        self._pools = {name: OwnPace(window, n) for name in self._surprise}
        self._pooled = {name: np.full(n, np.nan) for name in self._surprise}
        self._stale = {name: np.zeros(n, dtype=bool) for name in self._surprise}
        self._pause = np.zeros(n, dtype=np.int64)

    def reset(self, which: Mask) -> None:
        """Begin an episode in some environments."""
        for name, pool in self._pools.items():
            pool.clear(which)
            self._pooled[name][which] = np.nan
            self._stale[name][which] = False
        self._pause[which] = 0

    def forget(self, moved: frozenset[str], which: Mask) -> None:
        """Start the pools afresh after a retreat."""
        for name, pool in self._pools.items():
            if name in moved:
                pool.clear(which)
                self._pooled[name][which] = np.nan
            filled: Mask = ~np.asarray(np.isnan(pool.rows).all(axis=0))
            self._stale[name][which] = filled[which]
        self._pause[which] = self._window

    def update(
        self, values: dict[str, FloatArray], succeeded: Mask, muted: frozenset[str],
        moved: frozenset[str],
    ) -> FloatArray:  # fmt: skip
        """Take the metrics of one step in and return the scores, NaN while unknown."""
        paused = self._pause > 0
        self._pause[paused] -= 1
        pooled = []
        for name, surprise in self._surprise.items():
            silent = (succeeded & (name in muted)) | (paused & (name in moved))
            x = values.get(name)
            kept = self._pooled[name]
            if x is not None:
                s = np.where(silent, np.nan, surprises(surprise, x))
                known = ~np.isnan(s)
                stale = self._stale[name]
                if stale.any():
                    self._pools[name].clear(stale & known)
                    stale &= ~known
                self._pools[name].push(s)
                peak = np.fmax.reduce(self._pools[name].rows, axis=0)
                kept = np.where(known, peak, kept)
            kept = np.where(silent, np.nan, kept)
            self._pooled[name] = kept
            pooled.append(kept)
        return self._combine(np.stack(pooled)) if pooled else np.full(len(paused), np.nan)

    def _combine(self, pooled: FloatArray) -> FloatArray:
        known = ~np.isnan(pooled)
        count = known.sum(axis=0)
        if self._how == "max":
            return np.asarray(np.fmax.reduce(pooled, axis=0))
        if self._how == "mean_top2":
            top = np.sort(np.where(known, pooled, -1.0), axis=0)[-2:]
            total = np.where(top >= 0.0, top, 0.0).sum(axis=0)
            return np.where(count > 0, total / np.clip(count, 1, 2), np.nan)
        weights = np.array([self._weights[name] for name in self._surprise])[:, None] * known
        total = (weights * np.where(known, pooled, 0.0)).sum(axis=0)
        weight = weights.sum(axis=0)
        return np.where(count > 0, total / np.where(count > 0, weight, 1.0), np.nan)


@final
class VectorController:
    """As :class:`monitor.controller.Controller`; modes are 0 TASK, 1 RECOVER, 2 HALT."""

    def __init__(self, limits: Limits, running_max: bool, n: int) -> None:
        self.limits = limits
        self._running = running_max
        self.mode, self.attempts, self.age, self.calm, self._critical = (
            np.zeros(n, dtype=np.int64) for _ in range(5)
        )
        self._peak = np.full(n, np.nan)

    def reset(self, which: Mask) -> None:
        """Begin an episode in some environments."""
        for state in (self.mode, self.attempts, self.age, self.calm, self._critical):
            state[which] = 0
        self._peak[which] = np.nan

    def aggregate(self, score: FloatArray) -> FloatArray:
        """Return the scores that decide."""
        if not self._running:
            return score
        self._peak = np.fmax(self._peak, score)
        return self._peak.copy()

    def update(self, score: FloatArray, demand: NDArray[np.int64]) -> Ints:
        """Take one step in and return the modes; comparisons with NaN are false, as they must."""
        limits = self.limits
        live = self.mode != HALT
        critical = np.where(score >= limits.tau_halt, self._critical + 1, 0)
        self._critical = np.where(live, critical, self._critical)
        halt = live & ((demand == ASK_HALT) | (critical >= limits.halt_after))
        live &= ~halt
        task, recover = live & (self.mode == TASK), live & (self.mode == RECOVER)
        loud = score >= limits.tau_recover - limits.hysteresis
        calm = np.where(recover & ~loud & (demand == NONE), self.calm + 1, 0)
        done = recover & (self.age >= limits.dwell) & (calm >= limits.calm_steps)
        failed = recover & ~done & (self.age >= limits.patience)
        on = recover & ~done & ~failed
        start = task & ((demand == ASK_RECOVER) | (score >= limits.tau_recover))
        attempt = start | failed
        spent = attempt & (self.attempts >= limits.budget)
        begin = attempt & ~spent
        self.mode = np.where(halt | spent, HALT, np.where(begin, RECOVER, self.mode))
        self.mode = np.where(done, TASK, self.mode)
        self.attempts = self.attempts + begin
        frozen = ~(begin | on | done)
        self.age = np.where(begin, 1, np.where(on, self.age + 1, np.where(done, 0, self.age)))
        self.calm = np.where(frozen, self.calm, np.where(on, calm, 0))
        return self.mode
