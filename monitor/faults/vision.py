"""Faults of seeing as records; :mod:`monitor.core.judge` finds them."""

from __future__ import annotations

from monitor.faults.base import Scene, fault
from monitor.records import Fault


def bypassed(scene: Scene, count: int) -> Fault:
    """Return VISION_BYPASS after ``count`` equal answers."""
    text = f"the same answer to {count} different pictures"
    return fault("VISION_BYPASS", scene, text, field="image", value=count)


def black(scene: Scene) -> Fault:
    """Return CAMERA_BLACK with what the step says."""
    std = scene.evidence.image_std
    text = f"the picture is flat: standard deviation {std:.3g} of 255"
    return fault("CAMERA_BLACK", scene, text, field="image", value=std)


def frozen(scene: Scene, count: int, moved_m: float) -> Fault:
    """Return CAMERA_FROZEN after ``count`` equal pictures from a tool that moves."""
    text = f"the same picture for {count} steps, the tool moved {moved_m:.3f} m"
    return fault("CAMERA_FROZEN", scene, text, field="image", value=count)
