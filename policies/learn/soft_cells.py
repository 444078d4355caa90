"""A grid for actions of this task and soft labels on its cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from policies.base import FloatArray
from policies.spatialvla.grid import ActionGrid

__all__ = ["CELLS", "cell_count", "fitted_edges", "soft_cells"]

CELLS: Final[Mapping[str, Any]] = {
    "translation": {"theta_bins": 11, "phi_bins": 16, "r_bins": 7},
    "rotation": {"roll_bins": 5, "pitch_bins": 5, "yaw_bins": 5},
    "gripper": 2,
}
"""``num_bins`` of the processor: 1232 translations, 125 rotations, open and closed."""

_POLE_RAD: Final = 0.12
_RADII: Final = (0.0, 0.06, 0.16, 0.3, 0.5, 0.75, 0.95, 1.05)
"""The expert goes at full speed, 1, or slows down close to its aim, where cells must be small."""


def cell_count() -> int:
    """Number of action ids.

    >>> cell_count()
    1359
    """
    boxes = (CELLS["translation"], CELLS["rotation"])
    return sum(int(math.prod(axes.values())) for axes in boxes) + int(CELLS["gripper"])


def fitted_edges(theta: ArrayLike) -> dict[str, dict[str, list[float]]]:
    """``bin_policy`` of the processor for the polar angles of the demonstrations.

    A cell around each pole is for straight up and down, its middle the pole itself. Between them
    the edges are half way from equal cells to cells that are equally frequent. The azimuth and the
    rotations have equal cells, with no rotation in the middle of one.

    Args:
        theta: polar angles of the translations, radians, shape ``(n,)``.
    """
    angles = np.asarray(theta, dtype=np.float64)
    inside = angles[(angles > _POLE_RAD) & (angles < np.pi - _POLE_RAD)]
    low, high = _POLE_RAD, np.pi - _POLE_RAD
    share = np.linspace(0.0, 1.0, CELLS["translation"]["theta_bins"] - 1)
    even = low + share * (high - low)
    frequent = np.quantile(inside, share)
    frequent[[0, -1]] = low, high
    turns = np.linspace(-1.25, 1.25, 6).tolist()
    return {
        "translation": {
            "theta_bins": [-low, *(0.5 * (even + frequent)).tolist(), np.pi + low],
            "phi_bins": np.linspace(-np.pi, np.pi, 17).tolist(),
            "r_bins": list(_RADII),
        },
        "rotation": {"roll_bins": turns, "pitch_bins": turns, "yaw_bins": turns},
    }


def soft_cells(grid: ActionGrid, normalized: FloatArray, sigmas: tuple[float, float]) -> list[Any]:
    """Target distributions over the ids of translation, rotation and gripper.

    Near cells are small errors: the weight of a cell falls with the distance of its middle from the
    action as a Gaussian does. The gripper has one right answer.

    Args:
        grid: grid of the policy.
        normalized: actions, shape ``(n, 7)``.
        sigmas: standard deviations for translation and rotation, normalised units.

    Returns:
        Three arrays ``(n, ids of the group)`` float32.
    """
    middles = group_middles(grid)
    parts = (normalized[:, :3], normalized[:, 3:6])
    out = [
        _gaussian(part, middle, sigma)
        for part, middle, sigma in zip(parts, middles, sigmas, strict=True)
    ]
    opened = grid.encode(normalized)[:, 2] - grid.groups[2][0]
    return [*out, np.eye(grid.gripper, dtype=np.float32)[opened]]


def group_middles(grid: ActionGrid) -> tuple[FloatArray, FloatArray]:
    """Middles of all translations and of all rotations, ``(ids, 3)`` each."""
    firsts = [low for low, _ in grid.groups]
    every = []
    for group in (0, 1):
        low, high = grid.groups[group]
        ids = np.tile(firsts, (high - low, 1))
        ids[:, group] = np.arange(low, high)
        every.append(grid.decode(ids)[:, 3 * group : 3 * group + 3])
    return every[0], every[1]


def _gaussian(values: FloatArray, middles: FloatArray, sigma: float) -> Any:
    square = ((values[:, None, :] - middles[None, :, :]) ** 2).sum(axis=-1)
    nearest = square.min(axis=1, keepdims=True)
    weight = np.exp(-0.5 * (square - nearest) / sigma**2)
    return (weight / weight.sum(axis=1, keepdims=True)).astype(np.float32)
