"""What goes wrong in SimplerEnv's scenes, in the sizes that are drawn for the scene index."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import numpy as np

from envs.base import FloatArray
from envs.simpler.tasks import Kind, SimplerTask
from envs.tabletop.disturbance import Disturbance, make_disturbance
from monitor.errors import unknown_name

__all__ = ["Perturbation", "offered"]

DISTRACTORS: Final = "distractors"
_ANYWHERE: Final = ("camera_shifted", "lights_changed", "action_noise", "action_delay")
_ON_A_TABLE: Final = ("object_pushed", "object_removed", DISTRACTORS)
_AWAY_M: Final = (-0.15, 1.6, 0.3)
"""Where a removed object goes: out of every camera's sight."""


def offered(task: SimplerTask) -> tuple[str, ...]:
    """Names of disturbances that a task takes.

    Those of ``widowx-put-on`` with the same meaning, except the unseen colour; and ``distractors``,
    which lays two further objects on the table.
    """
    if task.kind in (Kind.PICK, Kind.MOVE_NEAR, Kind.PUT_ON):
        return (*_ANYWHERE, *_ON_A_TABLE)
    return (*_ANYWHERE, "object_removed") if task.kind is Kind.PUT_IN else _ANYWHERE


class Perturbation:
    """One disturbance of one episode.

    Args:
        task: whose episode it is.
        name: one of :func:`offered`, or None for a clean episode.
        scene: index of the scene, which alone decides when and how hard.

    Raises:
        ValueError: if the task does not have this disturbance; the text lists those it has.
    """

    def __init__(self, task: SimplerTask, name: str | None, scene: int) -> None:
        if name is not None and name not in offered(task):
            raise ValueError(unknown_name("disturbance", name, offered(task)))
        self.name = name
        self.distracts = name == DISTRACTORS
        self._camera = task.camera
        self._scene = scene
        self._drawn: Disturbance | None = None
        if name is not None and not self.distracts:
            self._drawn = make_disturbance(name, scene)
        self._waiting: deque[FloatArray] = deque()

    def change_picture(self, sim: Any) -> bool:
        """Move the camera or change the lights; return whether the image changed.

        The lights tint the photograph behind the scene too; a moved camera leaves it where it is.
        """
        if self._drawn is None or self.name not in ("camera_shifted", "lights_changed"):
            return False
        if self.name == "camera_shifted":
            camera = sim._cameras[self._camera]
            home = camera.camera_cfg.pose
            step = type(home)(list(self._drawn.camera_offset_m), [1.0, 0.0, 0.0, 0.0])
            camera.camera.set_local_pose(home * step)
            return True
        factor = np.asarray(self._drawn.light)
        sim._scene.set_ambient_light(np.asarray(sim._scene.ambient_light) * factor)
        for light in sim._scene.get_all_lights():
            light.set_color(np.asarray(light.color) * factor)
        if sim.rgb_overlay_img is not None:
            sim.rgb_overlay_img = np.clip(sim.rgb_overlay_img * factor, 0.0, 1.0)
        return True

    def disturb_object(self, body: Any, step: int) -> None:
        """Push the object or take it away, when its step has come."""
        if self._drawn is None or step != self._drawn.start_step:
            return
        if self.name == "object_pushed":
            body.set_velocity([*self._drawn.push_m_s, 0.0])
        elif self.name == "object_removed":
            body.set_pose(type(body.pose)(list(_AWAY_M), [1.0, 0.0, 0.0, 0.0]))
            body.set_velocity(np.zeros(3))
            body.lock_motion(1, 1, 1, 1, 1, 1)

    def disturb_action(self, action: FloatArray, step: int, rest: FloatArray) -> FloatArray:
        """The action that reaches the arm.

        Args:
            action: the commanded action, shape ``(7,)``.
            step: steps since the reset.
            rest: action that reaches it while none has arrived yet.
        """
        if self._drawn is None:
            return action
        changed = action.copy()
        changed[:3] += self._drawn.noise(self._scene, step)
        if self.name != "action_delay":
            return changed
        self._waiting.append(changed)
        if len(self._waiting) <= self._drawn.delay_steps:
            return rest
        return self._waiting.popleft()
