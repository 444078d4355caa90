"""Start configurations by index, in the words of SimplerEnv's reset."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from envs.simpler.tasks import PICK_GRID, Kind, SimplerTask

__all__ = ["SceneStart", "scene_start"]

PICK_X_M: Final = (-0.35, -0.12)
PICK_Y_M: Final = (-0.02, 0.42)
"""Ends of the grid on which the published protocol lays the coke can, metres in the world.

Source: ``scripts/rt1_pick_coke_can_visual_matching.sh`` of SimplerEnv.
"""


class SceneStart(NamedTuple):
    """Arguments of SimplerEnv's reset; made again each time, since it writes into them.

    Attributes:
        seed: draws what the options leave open: looks of the robot, position of the cabinet.
        options: as ``env.reset`` takes them.
    """

    seed: int
    options: dict[str, Any]


def scene_start(task: SimplerTask, scene: int) -> SceneStart:
    """How a scene begins.

    Tasks of WidowX and move-near count their own start configurations (``episode_id``); a coke can
    lies on the published 5 x 5 grid, x first, for one orientation after the other; other tasks are
    drawn by SimplerEnv with the scene as seed.

    Raises:
        ValueError: if the task has no such scene.
    """
    if scene < 0 or (task.scene_count is not None and scene >= task.scene_count):
        allowed = "0, 1, 2, …" if task.scene_count is None else f"0 to {task.scene_count - 1}"
        last = "" if task.scene_count is None else f" ({task.scene_count} scenes)"
        msg = f"scene {scene} of {task.name!r} does not exist; allowed: {allowed}{last}"
        raise ValueError(msg)
    placed: dict[str, Any] = {}
    if task.orientations:
        orientation, cell = divmod(scene, PICK_GRID**2)
        column, row = divmod(cell, PICK_GRID)
        x, y = (np.linspace(*ends, PICK_GRID) for ends in (PICK_X_M, PICK_Y_M))
        placed["init_xy"] = [float(x[column]), float(y[row])]
        placed["orientation"] = task.orientations[orientation]
    elif task.kind in (Kind.MOVE_NEAR, Kind.PUT_ON, Kind.PUT_IN):
        placed["episode_id"] = scene
    # A rebuilt simulator forgets the last episode: contact caches, drive targets, looks.
    return SceneStart(scene, {"obj_init_options": placed, "reconfigure": True})
