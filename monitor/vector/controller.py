"""The controller of N environments."""

from __future__ import annotations

from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from monitor.controller import Limits
from monitor.records import FloatArray
from monitor.vector.history import Ints, Mask

TASK, RECOVER, HALT = 0, 1, 2
NONE, ASK_RECOVER, ASK_HALT = 0, 1, 2
LEVELS: Final = {"ignore": NONE, "alert": NONE, "recover": ASK_RECOVER, "halt": ASK_HALT}
"""Demand by response."""


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
