"""Stillness, reversals and progress towards the goal over the window (spec 5, 7, 8)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import sqrt
from typing import final

from monitor.config import MetricsConfig
from monitor.records import Evidence, Numbers

IDS = ("STILL", "TCP-path", "TCP-net", "REV", "PROG", "OT")


def is_reversal(a: Numbers, b: Numbers, floor: float, cosine: float) -> bool:
    """Tell whether translation ``b`` turns back on ``a``; below ``floor`` there is no direction.

    >>> is_reversal((0.01, 0.0, 0.0), (-0.01, 0.0, 0.0), 0.002, -0.5)
    True
    """
    na = a[0] * a[0] + a[1] * a[1] + a[2] * a[2]
    nb = b[0] * b[0] + b[1] * b[1] + b[2] * b[2]
    if na < floor * floor or nb < floor * floor:
        return False
    dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
    return bool(dot < cosine * sqrt(na) * sqrt(nb))


def distance(a: Numbers, b: Numbers) -> float:
    """Return the distance of two places, rounded as in compiled code (``math.dist`` is not).

    >>> distance((0.0, 0.0, 0.0), (2.0, 3.0, 6.0))
    7.0
    """
    x, y, z = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    return sqrt(x * x + y * y + z * z)


def added(row: Iterable[float]) -> float:
    """Return the sum from left to right, as compiled code adds (``sum`` of Python 3.12 does not).

    >>> added([0.1] * 10)
    0.9999999999999999
    """
    total = 0.0
    for x in row:
        total += x
    return total


def spread(row: Iterable[float | None]) -> float:
    """Return largest minus least of what is known in ``row``, 0 where little is.

    >>> spread([None, 0.25, 1.0])
    0.75
    """
    known = [x for x in row if x is not None]
    return max(known) - min(known) if known else 0.0


@final
class Progress:
    """What the window says about getting anywhere.

    - ``TCP-path``, ``TCP-net``: metres travelled and metres gained by the tool.
    - ``STILL``: floor / (floor + path), 1 = the arm does not move; 0 while the gripper moves.
    - ``REV``: share of consecutive actions that turn back.
    - ``PROG``: (1 - (d_start - d_end) / path of d) / 2; 0 = straight in, 1 = straight away.
    - ``OT``: Valle et al.'s (clip(e_t - e_{t-1}, -1, 1) + 1) / 2, 0.5 = no progress (privileged).
    """

    def __init__(self, config: MetricsConfig, gripper: int | None) -> None:
        """Take the gripper's place in the action, None where it has none."""
        self._floor = config.still_path_m
        self._gripper_change = config.gripper_change
        self._gripper = gripper
        self._reversal = (config.reversal_floor_m, config.reversal_cosine)
        self._scale = config.goal_scale_m
        self._window = config.window
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._last_goal: float | None = None
        self._first_goal: float | None = None
        self.reversal: bool | None = None
        self._places: deque[Numbers] = deque(maxlen=self._window)
        self._paths: deque[float] = deque(maxlen=self._window - 1)
        self._openings: deque[float | None] = deque(maxlen=self._window)
        self._commands: deque[float | None] = deque(maxlen=self._window)
        self._goals: deque[float] = deque(maxlen=self._window)
        self._goal_paths: deque[float] = deque(maxlen=self._window - 1)
        self._turns: deque[bool] = deque(maxlen=self._window - 1)
        self._last_action: Numbers | None = None

    def update(self, evidence: Evidence, values: dict[str, float | None]) -> None:
        """Take one step in and write its metrics into ``values``."""
        self._turn(evidence.action, values)
        self._goal(evidence.goal_distance, values)
        self._still(evidence, values)

    def _turn(self, action: Numbers | None, values: dict[str, float | None]) -> None:
        self.reversal = None
        if action is None or len(action) < 3:
            self._turns.clear()
        elif self._last_action is not None:
            self.reversal = is_reversal(self._last_action, action, *self._reversal)
            self._turns.append(self.reversal)
        self._last_action = action
        full = len(self._turns) == self._window - 1
        values["REV"] = sum(self._turns) / len(self._turns) if full else None

    def _goal(self, goal: float | None, values: dict[str, float | None]) -> None:
        values["PROG"] = values["OT"] = None
        if goal is None:
            self._goals.clear()
            self._goal_paths.clear()
            self._last_goal = None
            return
        if self._first_goal is None:
            self._first_goal = goal
            values["OT"] = 0.5
        if self._goals:
            self._goal_paths.append(abs(goal - self._goals[-1]))
        if self._last_goal is not None:
            scale = self._scale or self._first_goal
            if scale > 0.0:
                change = (goal - self._last_goal) / scale
                values["OT"] = (min(max(change, -1.0), 1.0) + 1.0) / 2.0
        self._last_goal = goal
        self._goals.append(goal)
        if len(self._goals) == self._window:
            path = added(self._goal_paths)
            gain = self._goals[0] - goal
            moved = path > self._floor
            values["PROG"] = min(max((1.0 - gain / path) / 2.0, 0.0), 1.0) if moved else 0.5

    def _still(self, evidence: Evidence, values: dict[str, float | None]) -> None:
        place = evidence.tcp_position
        values["STILL"] = values["TCP-path"] = values["TCP-net"] = None
        if place is None:
            self._places.clear()
            self._paths.clear()
        else:
            if self._places:
                self._paths.append(distance(self._places[-1], place))
            self._places.append(place)
        opening, action = evidence.gripper, evidence.action
        self._openings.append(opening)
        # What is commanded stands in for what is not measured, on a scale of its own.
        told = None
        if opening is None and action is not None and self._gripper is not None:
            told = action[self._gripper]
        self._commands.append(told)
        path = None
        if len(self._places) == self._window:
            path = added(self._paths)
            values["TCP-path"] = path
            values["TCP-net"] = distance(self._places[0], self._places[-1])
        elif place is None and len(self._goals) == self._window:
            # Without a pose, a goal distance that does not change says the same.
            path = added(self._goal_paths)
        if path is not None:
            most = max(spread(self._openings), spread(self._commands))
            busy = most > self._gripper_change
            values["STILL"] = 0.0 if busy else self._floor / (self._floor + path)
