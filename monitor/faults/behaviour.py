"""Faults of behaviour over steps: stalls, drops, a gripper that does not answer."""

from __future__ import annotations

from typing import Final, final

from monitor.faults.base import Scene, Setting, fault
from monitor.records import Fault

SMOOTH: Final = ("A-PI", "A-VI", "A-AI", "TCP-PI", "TCP-VI", "TCP-AI", "TI")


def stalled(scene: Scene, count: int) -> Fault:
    """Return STALL after ``count`` windows without motion."""
    text = f"the arm has not moved for {count} windows and the goal is not reached"
    smooth = list(SMOOTH)
    return fault("STALL", scene, text, field="tcp_position", value=count, uninformative=smooth)


def dropped(scene: Scene, first: int, lost: int) -> Fault:
    """Return DROP: the success of step ``first`` is gone for ``lost`` steps."""
    text = f"success of step {first} is lost for {lost} steps"
    return fault("DROP", scene, text, field="success", value=first)


def unanswered(scene: Scene, closing: bool, count: int, start: float) -> Fault:
    """Return GRIPPER_NO_RESPONSE after ``count`` commands, the opening still ``start``."""
    verb = "close" if closing else "open"
    text = f"told to {verb} {count} times, the opening stays at {start}"
    return fault("GRIPPER_NO_RESPONSE", scene, text, field="gripper", value=start)


@final
class Stall:
    """STALL: the arm is still and the goal is not reached; smoothness says nothing then."""

    def __init__(self, setting: Setting) -> None:
        self._need = setting.config.stall_steps
        self._goal = setting.config.stall_goal_m
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._count = 0

    def check(self, scene: Scene) -> list[Fault]:
        """Return the fault after enough still steps; none after a success."""
        still = scene.metrics.get("STILL")
        distance = scene.evidence.goal_distance
        if scene.succeeded or (distance is not None and distance <= self._goal):
            self._count = 0
        elif still is not None:
            # STILL = floor / (floor + path) is above a half when the path is below its floor.
            self._count = self._count + 1 if still > 0.5 else 0
        if self._count < self._need:
            return []
        return [stalled(scene, self._count)]


@final
class Drop:
    """DROP: the task was solved and has not been for a whole window.

    A success that comes and goes while the gripper opens is no drop: fingers touch what they let
    go of.
    """

    def __init__(self, setting: Setting) -> None:
        self._need = setting.window
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._first: int | None = None
        self._lost = 0

    def check(self, scene: Scene) -> list[Fault]:
        """Return the fault from the n-th step on at which an earlier success is gone."""
        now = scene.evidence.success
        if now:
            self._first = scene.step if self._first is None else self._first
            self._lost = 0
        elif self._first is not None and (now is False or self._lost):
            self._lost += 1
        if self._first is None or self._lost < self._need:
            return []
        return [dropped(scene, self._first, self._lost)]


@final
class Gripper:
    """GRIPPER_NO_RESPONSE: commanded to close (or open) and the measured opening stays."""

    def __init__(self, setting: Setting) -> None:
        self._commands = setting.gripper
        self._need = setting.config.gripper_steps
        self._change = setting.gripper_change
        dim = len(setting.action_low)
        self._column = setting.gripper.column(dim) if dim > 3 else -1
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._closing: bool | None = None
        self._told: float | None = None
        self._start: float | None = None
        self._count = 0

    def check(self, scene: Scene) -> list[Fault]:
        """Return the fault after enough commands without an answer."""
        action, opening = scene.evidence.action, scene.evidence.gripper
        if action is not None and self._column >= 0 and opening is not None:
            grip = action[self._column]
            closing = self._commands.closing(grip, self._told)
            if closing is not None:
                self._told = grip
                if closing != self._closing:
                    self._closing, self._start, self._count = closing, opening, 0
            asks = closing is not None or not self._commands.relative
            if asks and self._start is not None:
                self._wait(opening, self._start)
        if self._start is None or self._count < self._need:
            return []
        return [unanswered(scene, bool(self._closing), self._count, self._start)]

    def _wait(self, opening: float, start: float) -> None:
        closed = opening <= self._change
        there = closed if self._closing else opening >= 1.0 - self._change
        if there or abs(opening - start) > self._change:
            # It has answered; only a new command asks again.
            self._count = -1
        elif self._count >= 0:
            self._count += 1
