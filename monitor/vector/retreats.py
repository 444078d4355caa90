"""The retreats of N environments."""

from __future__ import annotations

from typing import final

import numpy as np

from monitor.config import GripperConfig, RecoveryConfig
from monitor.gripper import GripperCommands
from monitor.records import FloatArray
from monitor.vector.history import Ints, Mask


@final
class VectorRetreats:
    """As :class:`monitor.recovery.Retreat`, with NaN for unknown places, openings and actions."""

    def __init__(
        self,
        config: RecoveryConfig,
        gripper: GripperConfig,
        low: FloatArray,
        high: FloatArray,
        n: int,
    ) -> None:
        self._config, self._told_by = config, gripper
        self._commands = GripperCommands.of(gripper)
        self._gripper = self._commands.column(len(low))
        self._low, self._high = low, high
        self._neutral = np.clip(np.zeros(len(low)), low, high)
        self._told = np.full(n, np.nan)
        self._closing = np.zeros(n, dtype=bool)
        # A ring of safe places, how many there have ever been, and the newest.
        self._safe = np.zeros((n, config.memory, 3))
        self._count: Ints = np.zeros(n, dtype=np.int64)
        self._newest = np.full((n, 3), np.nan)
        # The way back: at first where it began, which may be unknown.
        self._path = np.zeros((n, config.memory + 1, 3))
        self._at, self._end = np.zeros((2, n), dtype=np.int64)

    def reset(self, which: Mask) -> None:
        """Begin an episode in some environments."""
        self._told[which] = self._newest[which] = np.nan
        self._closing[which] = False
        self._count[which] = self._at[which] = self._end[which] = 0

    def note_actions(self, action: FloatArray, which: Mask) -> None:
        """Keep what the policies of some environments ask of the gripper."""
        if self._gripper < 0:
            return
        grip = action[:, self._gripper]
        # A command that is told again says nothing new.
        envs = np.flatnonzero(which & (grip != self._told))
        if len(envs):
            closing = self._commands.closing_each(grip[envs], self._told[envs])
            said = ~np.isnan(closing)
            envs = envs[said]
            self._told[envs] = grip[envs]
            self._closing[envs] = closing[said] > 0.5

    def remember(self, place: FloatArray, which: Mask) -> None:
        """Note the places ``(N, 3)`` of environments in which all is well."""
        if len(self._low) < 3:
            return
        envs = np.flatnonzero(which)
        if len(envs):
            # The first place of an episode is as far as none.
            gone = lengths(place[envs] - self._newest[envs])
            far = ~(gone <= self._config.tolerance_m) & ~np.isnan(place[envs, 0])
            envs = envs[far]
            self._safe[envs, self._count[envs] % self._config.memory] = place[envs]
            self._newest[envs] = place[envs]
            self._count[envs] += 1

    def begin(self, envs: Ints, place: FloatArray) -> None:
        """Lay out the ways back of environments ``(K,)`` at ``(K, 3)``, newest first, raised."""
        memory, count = self._config.memory, self._count[envs]
        path = self._path
        path[envs, 0] = place
        slots = (count[:, None] - 1 - np.arange(memory)) % memory
        path[envs, 1:] = self._safe[envs[:, None], slots]
        path[envs, :, 2] += self._config.raise_m
        self._at[envs] = np.isnan(place[:, 0])
        self._end[envs] = 1 + np.minimum(count, memory)

    def actions(
        self, envs: Ints, place: FloatArray, gripper: FloatArray, moving: Mask
    ) -> FloatArray:
        """Return the actions of this step, ``(K, D)``; those that do not move hold the place.

        Args:
            envs: ``(K,)``.
            place: ``(K, 3)``.
            gripper: ``(K,)`` opening.
            moving: ``(K,)``.
        """
        config = self._told_by
        out = np.tile(self._neutral, (len(envs), 1))
        moving = moving & ~np.isnan(place[:, 0])
        if out.shape[1] >= 3 and moving.any():
            out[moving, :3] = self._deltas(envs[moving], place[moving])
        if out.shape[1] > 3 and self._gripper >= 0:
            low, high = config.held_opening
            held = np.isnan(gripper) | ((low < gripper) & (gripper < high))
            close = self._closing[envs] & held
            out[:, self._gripper] = np.where(close, config.close, config.open)
        return np.clip(out, self._low, self._high)

    def _deltas(self, envs: Ints, place: FloatArray) -> FloatArray:
        while True:
            at = self._at[envs]
            ahead = at < self._end[envs]
            want = self._path[envs, np.where(ahead, at, 0)] - place
            reached = ahead & (lengths(want) < self._config.tolerance_m)
            if not reached.any():
                break
            self._at[envs[reached]] += 1
        want[~ahead] = 0.0
        # One factor for all three keeps the direction inside the action space.
        limit = np.where(want > 0.0, self._high[:3], self._low[:3])
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(want != 0.0, limit / want, 1.0)
        scaled: FloatArray = want * np.clip(factors.min(axis=1), 0.0, 1.0)[:, None]
        return scaled


def lengths(vectors: FloatArray) -> FloatArray:
    """Return the lengths of ``(K, 3)`` vectors.

    >>> lengths(np.array([[3.0, 0.0, 4.0]])).tolist()
    [5.0]
    """
    x, y, z = vectors.T
    return np.asarray(np.sqrt(x * x + y * y + z * z))
