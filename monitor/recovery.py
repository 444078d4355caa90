"""Retreat: back along the arm's own recent safe path, raised, so that the policy can try again."""

from __future__ import annotations

from collections import deque
from math import sqrt
from typing import final

import numpy as np

from monitor.config import GripperConfig, RecoveryConfig
from monitor.gripper import GripperCommands
from monitor.records import Evidence, FloatArray, Numbers


@final
class Retreat:
    """Remembers where the arm was safe and leads it back there.

    Actions are in environment units: the first three numbers are a translation in metres in the
    robot's base frame, rotations stay as they are, the gripper opens unless it holds something.
    """

    def __init__(
        self,
        config: RecoveryConfig,
        low: FloatArray,
        high: FloatArray,
        gripper: GripperConfig | None = None,
    ) -> None:
        self._config = config
        self._gripper = GripperConfig() if gripper is None else gripper
        self._commands = GripperCommands.of(self._gripper)
        column = self._commands.column(len(low))
        self._column = column if column >= 0 else None
        self._low = low
        self._high = high
        self._neutral = np.clip(np.zeros(len(low)), low, high)
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._safe: deque[Numbers] = deque(maxlen=self._config.memory)
        self._path: list[Numbers] = []
        self.closing = False
        self._told: float | None = None

    def remember(self, evidence: Evidence) -> None:
        """Note a step at which all is well."""
        place = evidence.tcp_position
        if place is None or len(self._low) < 3:
            return
        if not self._safe or distance(self._safe[-1], place) > self._config.tolerance_m:
            self._safe.append(place)

    def begin(self, evidence: Evidence) -> None:
        """Lay out the way back, newest place first, raised."""
        lift = self._config.raise_m
        places = list(reversed(self._safe))
        if evidence.tcp_position is not None:
            places.insert(0, evidence.tcp_position)
        self._path = [(x, y, z + lift) for x, y, z in places]

    def note_action(self, action: Numbers | None) -> None:
        """Keep what the policy last asked of the gripper."""
        if action is not None and self._column is not None:
            grip = action[self._column]
            closing = self._commands.closing(grip, self._told)
            if closing is not None:
                self.closing, self._told = closing, grip

    def holds(self, evidence: Evidence) -> bool:
        """Tell whether the gripper seems to hold something: commanded closed, but not shut.

        Without a measured opening a commanded-closed gripper counts as holding: dropping an
        object is worse than carrying nothing.
        """
        if not self.closing:
            return False
        if evidence.gripper is None:
            return True
        low, high = self._gripper.held_opening
        return low < evidence.gripper < high

    def action(self, evidence: Evidence, moving: bool) -> FloatArray:
        """Return the ``(D,)`` action of this step; ``moving=False`` holds the place."""
        out = self._neutral.copy()
        if moving and evidence.tcp_position is not None and len(out) >= 3:
            out[:3] = self._delta(evidence.tcp_position)
        if len(out) > 3 and self._column is not None:
            gripper = self._gripper
            out[self._column] = gripper.close if self.holds(evidence) else gripper.open
        return np.clip(out, self._low, self._high)

    def _delta(self, place: Numbers) -> FloatArray:
        while self._path and distance(self._path[0], place) < self._config.tolerance_m:
            self._path.pop(0)
        if not self._path:
            return np.zeros(3)
        want = np.array(self._path[0]) - place
        # One factor for all three keeps the direction inside the action space.
        limit = np.where(want > 0.0, self._high[:3], self._low[:3])
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(want != 0.0, limit / want, 1.0)
        scaled: FloatArray = want * max(0.0, min(1.0, float(factors.min())))
        return scaled


def distance(a: Numbers, b: Numbers) -> float:
    """Return the distance as many robots' retreats reckon it; ``math.dist`` rounds otherwise."""
    x, y, z = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    return sqrt(x * x + y * y + z * z)
