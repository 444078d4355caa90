"""Distractor objects on the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from envs.base import FloatArray

__all__ = ["MODELS", "draw_distractors", "free_positions", "lay"]

MODELS: Final = ("apple", "orange", "sponge")
"""Models of SimplerEnv that lie in any pose in which they fall."""
COUNT: Final = 2
TABLES: Final = {
    "widowx": ((-0.27, -0.05), (-0.14, 0.14), 0.085),
    "google_robot": ((-0.34, -0.12), (0.0, 0.40), 0.12),
}
"""Area by robot: ends along x and y [m in the world], and the gap between object centres [m]."""
_SALT: Final = 23
_DROP_M: Final = 0.12
_SETTLE_S: Final = 0.5


def free_positions(robot: str, taken: Iterable[FloatArray], scene: int) -> list[FloatArray]:
    """Free positions for distractors, drawn by the scene alone.

    Args:
        robot: key of :data:`TABLES`.
        taken: positions of what lies there, each of shape ``(2,)`` or longer.
        scene: index of the scene.

    Returns:
        At most :data:`COUNT` positions of shape ``(2,)``; fewer where the table is full.
    """
    (x_low, x_high), (y_low, y_high), gap = TABLES[robot]
    rng = np.random.default_rng([_SALT, scene])
    used = [np.asarray(position, dtype=np.float64)[:2] for position in taken]
    found: list[FloatArray] = []
    for _ in range(200):
        position = rng.uniform([x_low, y_low], [x_high, y_high])
        if all(np.linalg.norm(position - other) >= gap for other in used):
            used.append(position)
            found.append(position)
            if len(found) == COUNT:
                break
    return found


def draw_distractors(
    robot: str, taken: Iterable[FloatArray], scene: int
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Models with the position and quaternion of each, drawn by the scene alone.

    Args:
        robot: key of :data:`TABLES`.
        taken: as of :func:`free_positions`.
        scene: index of the scene.
    """
    models = np.random.default_rng([_SALT, scene, 1]).permutation(MODELS)
    upright = np.array([1.0, 0.0, 0.0, 0.0])
    found = free_positions(robot, taken, scene)
    return {str(model): (xy, upright) for model, xy in zip(models, found, strict=False)}


def lay(sim: Any, placements: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> list[Any]:
    """Build further objects and let them come to rest, as SimplerEnv lets its own.

    Args:
        sim: SimplerEnv's environment after its reset.
        placements: position (x, y) [m in the world] and quaternion (w, x, y, z) by model.

    Returns:
        The bodies, named by their models.
    """
    bodies = []
    for model, (xy, quaternion) in placements.items():
        body = sim._build_actor_helper(model, sim._scene, root_dir=sim.asset_root)
        body.name = model
        position = [*np.asarray(xy, dtype=np.float64), sim.scene_table_height + _DROP_M]
        body.set_pose(type(sim.agent.robot.pose)(position, list(np.asarray(quaternion))))
        body.lock_motion(1, 1, 0, 1, 1, 0)
        bodies.append(body)
    if not bodies:
        return bodies
    sim._settle(_SETTLE_S)
    for body in bodies:
        body.lock_motion(0, 0, 0, 0, 0, 0)
        body.set_pose(body.pose)  # else it may sleep
        body.set_velocity(np.zeros(3))
        body.set_angular_velocity(np.zeros(3))
    sim._settle(_SETTLE_S)
    return bodies
