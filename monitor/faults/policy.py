"""Faults of the policy's output and pace as records; :mod:`monitor.core.judge` finds them."""

from __future__ import annotations

from monitor.faults.base import Scene, Setting, fault
from monitor.records import Fault


def off_vocabulary(scene: Scene) -> Fault:
    """Return OFF_VOCAB_TOKEN with what the step's metrics say."""
    mass, outside = scene.metrics["action_mass"], scene.metrics.get("tokens_outside") or 0.0
    text = f"{outside:.0f} tokens outside the action bins; least mass on the bins {mass:.3f}"
    return fault("OFF_VOCAB_TOKEN", scene, text, field="token_logits", value=mass)


def mis_scaled(scene: Scene, share: float, setting: Setting) -> Fault:
    """Return UNNORM_MISMATCH: ``share`` of the window's translations exceed their limits."""
    limits = list(setting.translation_limits)
    text = f"{share:.0%} of the translations exceed {limits}: which unnorm_key is it?"
    return fault("UNNORM_MISMATCH", scene, text, field="action", value=share)


def late(scene: Scene, count: int, setting: Setting) -> Fault:
    """Return LATENCY after ``count`` late replies in a row."""
    text = f"{count} replies in a row later than {setting.deadline_s} s"
    return fault("LATENCY", scene, text, field="latency_s", value=scene.evidence.latency_s)
