"""Actions as tokens: adaptive grids of directions and rotations, three tokens a step.

One token is a cell of a translation in spherical coordinates, one a cell of a rotation, one the
gripper. The edges of the cells come with the checkpoint: they are fitted to the actions it was
trained on, so that no cell is rare. Source: Qu et al. 2025, "SpatialVLA", section III-B (adaptive
action grids), and its public code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import ConfigError
from policies.base import FloatArray

__all__ = ["TOKENS_PER_STEP", "ActionGrid"]

TOKENS_PER_STEP: Final = 3
"""Translation, rotation, gripper."""

_AXES: Final = {
    "translation": {
        "theta_bins": (0.0, np.pi),
        "phi_bins": (-np.pi, np.pi),
        "r_bins": (0.0, np.sqrt(3.0)),
    },
    "rotation": {
        "roll_bins": (-1.0, 1.0),
        "pitch_bins": (-1.0, 1.0),
        "yaw_bins": (-1.0, 1.0),
    },
}
"""Axes of each grid in the order of the ids, with their range where no edges are given."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActionGrid:
    """Cells of the action space and their ids.

    Attributes:
        begin: id of the first cell; translations, rotations and gripper follow one another.
        translation: edges along each axis, ascending.
        rotation: the same.
        gripper: number of gripper tokens; the first one closes, any other opens.
        spherical: translations are polar angle, azimuth and radius; otherwise x, y, z.
    """

    begin: int
    translation: tuple[FloatArray, ...]
    rotation: tuple[FloatArray, ...]
    gripper: int
    spherical: bool = True

    @classmethod
    def from_json(cls, processor: Mapping[str, Any], begin: int, total: int) -> ActionGrid:
        """Read a parsed ``processor_config.json``.

        Args:
            processor: its ``action_config`` counts the cells, its ``bin_policy`` gives the edges;
                without the latter all cells of an axis are of one size, as upstream has it.
            begin: id of the first cell.
            total: number of action ids of the model.

        Raises:
            ConfigError: if the edges or the ids do not fit these counts.
        """
        action = processor.get("action_config")
        if not action:
            msg = "processor_config.json lacks 'action_config', which counts the cells of the grid"
            raise ConfigError(msg)
        counts, policy = action["num_bins"], processor.get("bin_policy") or {}
        edges = {
            name: tuple(
                _edges(f"{name}.{axis}", policy.get(name, {}).get(axis), counts[name][axis], ends)
                for axis, ends in axes.items()
            )
            for name, axes in _AXES.items()
        }
        grid = cls(
            begin=begin,
            translation=edges["translation"],
            rotation=edges["rotation"],
            gripper=int(counts["gripper"]),
            spherical=bool(action.get("use_spherical", True)),
        )
        if grid.groups[-1][1] - begin != total:
            msg = (
                f"the grid of processor_config.json has {grid.groups[-1][1] - begin} cells, "
                f"config.json has {total} action tokens (spatial_token_num)"
            )
            raise ConfigError(msg)
        return grid

    @property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """Half-open ranges of the ids of translation, rotation and gripper."""
        sizes = (_cells(self.translation), _cells(self.rotation), self.gripper)
        ends = self.begin + np.cumsum(sizes)
        return tuple((int(end) - size, int(end)) for end, size in zip(ends, sizes, strict=True))

    def in_place(self, token_ids: ArrayLike) -> bool:
        """Whether every token is of the group that its place asks for.

        Args:
            token_ids: shape ``(n, 3)`` or ``(3 n,)``.
        """
        ids = _steps(token_ids)
        low, high = np.transpose(self.groups)
        return bool(((ids >= low) & (ids < high)).all())

    def decode(self, token_ids: ArrayLike) -> FloatArray:
        """Normalised actions: the middles of the cells.

        An id outside its group clips to the group's end, as upstream does; see :meth:`in_place`.

        Args:
            token_ids: shape ``(n, 3)`` or ``(3 n,)``.

        Returns:
            Shape ``(n, 7)``: translation and rotation in [-1, 1], gripper 0 or 1 (open).
        """
        low, high = np.transpose(self.groups)
        cell = np.clip(_steps(token_ids), low, high - 1) - low
        place = _middles(cell[:, 0], self.translation)
        if self.spherical:
            place = _cartesian(place)
        # The sphere is the one around the cube of the normalised actions.
        place = np.clip(place, -1.0, 1.0)
        opened = np.where(cell[:, 2:] == 0, 0.0, 1.0)
        return np.concatenate([place, _middles(cell[:, 1], self.rotation), opened], axis=1)

    def encode(self, actions: ArrayLike) -> NDArray[np.int64]:
        """Ids of normalised actions ``(n, 7)``, shape ``(n, 3)``."""
        clipped = np.clip(np.asarray(actions, dtype=np.float64).reshape(-1, 7), -1.0, 1.0)
        place = clipped[:, :3]
        if self.spherical:
            place = _spherical(place)
        columns = [
            _cell(place, self.translation),
            _cell(clipped[:, 3:6], self.rotation),
            (clipped[:, 6] >= 0.5).astype(np.int64),
        ]
        first = np.transpose(np.asarray(self.groups, dtype=np.int64))[0]
        return np.asarray(np.stack(columns, axis=1) + first, dtype=np.int64)


def _edges(name: str, given: Any, count: int, ends: tuple[float, float]) -> FloatArray:
    if given is None:
        return np.linspace(*ends, count + 1)
    edges = np.asarray(given, dtype=np.float64)
    if edges.shape != (count + 1,) or (np.diff(edges) < 0.0).any():
        msg = (
            f"bin_policy of {name} must be {count + 1} ascending edges, as action_config counts "
            f"{count} cells; got {edges.tolist()}"
        )
        raise ConfigError(msg)
    return edges


def _cells(axes: tuple[FloatArray, ...]) -> int:
    return int(np.prod([len(edges) - 1 for edges in axes]))


def _shape(axes: tuple[FloatArray, ...]) -> tuple[int, ...]:
    return tuple(len(edges) - 1 for edges in axes)


def _steps(token_ids: ArrayLike) -> NDArray[np.int64]:
    ids = np.asarray(token_ids, dtype=np.int64)
    if ids.size % TOKENS_PER_STEP:
        msg = f"{ids.size} tokens are no whole number of steps of {TOKENS_PER_STEP}"
        raise ValueError(msg)
    return ids.reshape(-1, TOKENS_PER_STEP)


def _middles(cell: NDArray[np.int64], axes: tuple[FloatArray, ...]) -> FloatArray:
    parts = np.unravel_index(cell, _shape(axes))
    pairs = zip(parts, axes, strict=True)
    return np.stack([0.5 * (edges[part] + edges[part + 1]) for part, edges in pairs], axis=1)


def _cell(values: FloatArray, axes: tuple[FloatArray, ...]) -> NDArray[np.int64]:
    parts = [np.digitize(column, edges[1:-1]) for column, edges in zip(values.T, axes, strict=True)]
    return np.asarray(np.ravel_multi_index(tuple(parts), _shape(axes)), dtype=np.int64)


def _cartesian(place: FloatArray) -> FloatArray:
    theta, phi, r = place.T
    flat = r * np.sin(theta)
    return np.stack([flat * np.cos(phi), flat * np.sin(phi), r * np.cos(theta)], axis=1)


def _spherical(place: FloatArray) -> FloatArray:
    x, y, z = place.T
    flat = x**2 + y**2
    return np.stack([np.arctan2(np.sqrt(flat), z), np.arctan2(y, x), np.sqrt(flat + z**2)], axis=1)
