"""The controller of N environments."""

from __future__ import annotations

from typing import Final, final

import numpy as np

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
        self._least = min(limits.tau_recover, limits.tau_halt)
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

    def update(self, score: FloatArray, demand: Ints) -> Ints:
        """Take one step in and return the modes; comparisons with NaN are false, as they must."""
        # Most environments have no reason to change, nor have those that were halted.
        stirred = (self.mode == RECOVER) | (demand > NONE) | (score >= self._least)
        stirred &= self.mode != HALT
        self._critical *= stirred
        envs = np.flatnonzero(stirred)
        if len(envs):
            # What has been handed out stays as it was.
            self.mode, self.attempts = self.mode.copy(), self.attempts.copy()
            self._transit(envs, score[envs], demand[envs])
        return self.mode

    def _transit(self, envs: Ints, score: FloatArray, demand: Ints) -> None:
        """As :func:`monitor.controller.transition` for environments that are not halted."""
        limits, mode, attempts, age = (
            self.limits,
            self.mode[envs],
            self.attempts[envs],
            self.age[envs],
        )
        critical = np.where(score >= limits.tau_halt, self._critical[envs] + 1, 0)
        halt = (demand == ASK_HALT) | (critical >= limits.halt_after)
        task, recover = ~halt & (mode == TASK), ~halt & (mode == RECOVER)
        loud = score >= limits.tau_recover - limits.hysteresis
        calm = np.where(recover & ~loud & (demand == NONE), self.calm[envs] + 1, 0)
        done = recover & (age >= limits.dwell) & (calm >= limits.calm_steps)
        failed = recover & ~done & (age >= limits.patience)
        on = recover & ~done & ~failed
        start = task & ((demand == ASK_RECOVER) | (score >= limits.tau_recover))
        attempt = start | failed
        spent = attempt & (attempts >= limits.budget)
        begin = attempt & ~spent
        mode = np.where(halt | spent, HALT, np.where(begin, RECOVER, mode))
        self.mode[envs] = np.where(done, TASK, mode)
        self.attempts[envs] = attempts + begin
        self.age[envs] = np.where(begin, 1, np.where(on, age + 1, np.where(done, 0, age)))
        frozen = ~(begin | on | done)
        self.calm[envs] = np.where(frozen, self.calm[envs], np.where(on, calm, 0))
        self._critical[envs] = critical
