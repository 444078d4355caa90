"""Faults of seeing: a policy that ignores the picture, a camera that shows nothing new."""

from __future__ import annotations

from math import sqrt
from typing import final

from monitor.faults.base import Scene, Setting, fault
from monitor.metrics.progress import added, distance
from monitor.records import Fault, Numbers


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
