"""Faults of behaviour over steps as records; :mod:`monitor.core.judge` finds them."""

from __future__ import annotations

from typing import Final

from monitor.faults.base import Scene, fault
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
