"""The shipped families of faults, one class each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import sqrt
from typing import Final, final

from monitor.faults.base import Detector, Scene, Setting
from monitor.faults.behaviour import dropped, stalled, unanswered
from monitor.faults.policy import late, mis_scaled, off_vocabulary
from monitor.faults.vision import black, bypassed, frozen
from monitor.records import Fault, Numbers
from tests.monitor.core.reference.progress import added, distance


@final
class VisionBypass:
    """VISION_BYPASS: equal logits (or, without logits, equal moves) under changing pictures.

    Without logits an arm that is told to stay where it is proves nothing: pictures change by
    light and noise alone, and staying may be the right answer to all of them.
    """

    def __init__(self, setting: Setting) -> None:
        self._need = setting.config.blind_steps
        self._still = setting.still_path_m
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._output: int | Numbers | None = None
        self._image: int | None = None
        self._count = 1
        self._has_logits = False

    def check(self, scene: Scene) -> list[Fault]:
        """Return the fault from the n-th equal answer to different pictures on."""
        evidence = scene.evidence
        output: int | Numbers | None = evidence.logits_id
        self._has_logits |= output is not None
        # Where there have been logits, a step without them says nothing, as one without a picture.
        if not self._has_logits:
            output = evidence.action
            if output is not None and sqrt(added([x * x for x in output[:3]])) <= self._still:
                self._output, self._count = None, 1
                return []
        if evidence.image_id is None or output is None:
            return self._found(scene)
        if output != self._output:
            self._count = 1
        elif evidence.image_id != self._image:
            self._count += 1
        self._output, self._image = output, evidence.image_id
        return self._found(scene)

    def _found(self, scene: Scene) -> list[Fault]:
        if self._count < self._need:
            return []
        return [bypassed(scene, self._count)]


@final
class Camera:
    """CAMERA_BLACK and CAMERA_FROZEN (the same picture while the tool moves)."""

    def __init__(self, setting: Setting) -> None:
        self._black = setting.config.black_std
        self._need = setting.config.frozen_steps
        self._path = setting.still_path_m
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._image: int | None = None
        self._place: Numbers | None = None
        self._count = 1
        self._moved = 0.0

    def check(self, scene: Scene) -> list[Fault]:
        """Return what is wrong with the camera at this step."""
        evidence, found = scene.evidence, []
        if evidence.image_std is not None and evidence.image_std < self._black:
            found.append(black(scene))
        if evidence.image_id is not None and evidence.image_id != self._image:
            self._image, self._count, self._moved = evidence.image_id, 1, 0.0
            self._place = evidence.tcp_position
        elif self._image is not None:
            # A picture that is not there is not the same one again.
            self._count += evidence.image_id is not None
            place = evidence.tcp_position
            if place is not None:
                if self._place is not None:
                    self._moved += distance(self._place, place)
                self._place = place
            # A still scene under a still robot gives equal pictures by right.
            if self._count >= self._need and self._moved > self._path:
                found.append(frozen(scene, self._count, self._moved))
        return found


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


DETECTORS: Final[dict[str, Callable[[Setting], Detector]]] = {
    "vision_bypass": VisionBypass,
    "camera": Camera,
    "stall": Stall,
    "drop": Drop,
    "gripper": Gripper,
    "vocabulary": OffVocabulary,
    "unnormalisation": Unnormalisation,
    "latency": Latency,
}
