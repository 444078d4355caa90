"""Faults of the policy's output and pace: tokens off the bins, wrong scale, late replies."""

from __future__ import annotations

from collections import deque
from typing import final

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


@final
class OffVocabulary:
    """OFF_VOCAB_TOKEN: a likeliest or chosen token is no action bin, or the bins hold little mass."""

    def __init__(self, setting: Setting) -> None:
        self._mass = setting.config.bin_mass

    def reset(self) -> None:
        """Nothing is kept between steps."""

    def check(self, scene: Scene) -> list[Fault]:
        """Return the fault of this step."""
        mass = scene.metrics.get("action_mass")
        if mass is None or (mass >= self._mass and not scene.metrics.get("tokens_outside")):
            return []
        return [off_vocabulary(scene)]


@final
class Unnormalisation:
    """UNNORM_MISMATCH: translations larger than the training data's, most of the time."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._limits = setting.translation_limits
        self._count = min(len(self._limits), len(setting.action_low))
        self._share = setting.config.unnorm_share
        self._window = setting.window
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._over: deque[int] = deque(maxlen=self._window)
        self._total = 0

    def check(self, scene: Scene) -> list[Fault]:
        """Return the fault when more than the share of the window's values is too large."""
        action, limits = scene.evidence.action, self._limits
        if action is not None and limits:
            if len(self._over) == self._window:
                self._total -= self._over[0]
            beyond = sum([abs(x) > m for x, m in zip(action, limits, strict=False)])
            self._over.append(beyond)
            self._total += beyond
        if len(self._over) < self._window:
            return []
        share = self._total / (self._window * self._count)
        if share <= self._share:
            return []
        return [mis_scaled(scene, share, self._setting)]


@final
class Latency:
    """LATENCY: replies later than the deadline several steps in a row."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._deadline = setting.deadline_s
        self._need = setting.config.late_steps
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._count = 0

    def check(self, scene: Scene) -> list[Fault]:
        """Return the fault from the n-th late reply on."""
        latency = scene.evidence.latency_s
        if latency is not None:
            self._count = self._count + 1 if latency > self._deadline else 0
        if self._count < self._need:
            return []
        return [late(scene, self._count, self._setting)]
