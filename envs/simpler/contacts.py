"""Which bodies of a SAPIEN 2 scene touch, and how hard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from envs.base import Contact

__all__ = ["link_parents", "read_contacts"]

_TOUCH_N: Final = 0.01
"""Below this SAPIEN lists bodies that are near and do not touch."""


def link_parents(robot: Any) -> dict[str, str | None]:
    """Parent link by link of a SAPIEN 2 articulation."""
    parents: dict[str, str | None] = {}
    for joint in robot.get_joints():
        parent = joint.get_parent_link()
        parents[joint.get_child_link().name] = parent.name if parent is not None else None
    return parents


def read_contacts(
    contacts: Iterable[Any], sim_freq_hz: float, apart: frozenset[frozenset[str]]
) -> tuple[Contact, ...]:
    """Bodies that touch now, each pair once.

    SimplerEnv's WidowX presses links of its own gripper together with 15 kN all the time, which is
    why pairs of neighbouring links are left out.

    Args:
        contacts: contacts of the scene, after its last physics step.
        sim_freq_hz: physics steps a second.
        apart: pairs of bodies that are left out.

    Returns:
        Contacts with the force of the last physics step.
    """
    impulses: dict[tuple[str, str], NDArray[np.float64]] = {}
    for contact in contacts:
        one, two = sorted((str(contact.actor0.name), str(contact.actor1.name)))
        if frozenset({one, two}) in apart:
            continue
        total = impulses.setdefault((one, two), np.zeros(3))
        sign = 1.0 if contact.actor0.name == one else -1.0
        for point in contact.points:
            total += sign * np.asarray(point.impulse, dtype=np.float64)
    forces = {pair: float(np.linalg.norm(n_s)) * sim_freq_hz for pair, n_s in impulses.items()}
    return tuple(
        Contact(body_a=one, body_b=two, force_n=force)
        for (one, two), force in sorted(forces.items())
        if force > _TOUCH_N
    )
