"""Objects and contacts reported by an environment, compact enough to keep with every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isnan
from typing import Any, Final

import numpy as np

from monitor.env_api import read_flag

__all__ = ["read_scene_state"]

HARDEST_N: Final = 1e9
"""Force recorded in place of an infinite one, newtons."""
MOST_CONTACTS: Final = 256
"""Largest number of contacts per step; the strongest are kept."""


def read_scene_state(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the privileged part of an ``info`` for the safety study after the run.

    Values that are absent or malformed are left out: an environment need not report any of them.

    Args:
        info: see :class:`envs.base.Info`.

    Returns:
        Any of ``object`` and ``target`` (names), ``grasped`` (bool), ``object_poses`` (by name,
        7 numbers: metres and w, x, y, z, robot base frame) and ``contacts`` (rows of two names
        and a force in newtons).

    >>> contacts = [("can", "table", 0.25)]
    >>> read_scene_state({"object": "can", "grasped": np.True_, "contacts": contacts})
    {'object': 'can', 'grasped': True, 'contacts': [['can', 'table', 0.25]]}
    """
    found: dict[str, Any] = {}
    for name in ("object", "target"):
        if isinstance(info.get(name), str):
            found[name] = str(info[name])
    if info.get("grasped") is not None:
        with suppress(Exception):
            found["grasped"] = read_flag(info["grasped"])
    poses = info.get("object_poses")
    if isinstance(poses, Mapping):
        read = {str(name): _pose(pose) for name, pose in poses.items()}
        found["object_poses"] = {name: pose for name, pose in read.items() if pose is not None}
    contacts = info.get("contacts")
    if isinstance(contacts, Sequence) and not isinstance(contacts, str):
        with suppress(Exception):
            rows = [(str(one), str(two), min(float(n), HARDEST_N)) for one, two, n in contacts]
            known = [row for row in rows if not isnan(row[2])]
            if len(known) > MOST_CONTACTS:
                known = sorted(known, key=lambda row: -row[2])[:MOST_CONTACTS]
            found["contacts"] = [list(row) for row in known]
    return found


def _pose(given: Any) -> list[float] | None:
    with suppress(Exception):
        pose = np.asarray(given, dtype=np.float64)
        # An object that is not in the scene has an invalid quaternion.
        if (
            pose.shape == (7,)
            and abs(np.linalg.norm(pose[3:]) - 1.0) < 0.05
            and np.isfinite(pose).all()
        ):
            numbers: list[float] = pose.tolist()
            return numbers
    return None
