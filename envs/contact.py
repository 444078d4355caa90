"""Which bodies of a ManiSkill 3 scene touch, and how hard."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import fsum
from typing import Any, Final

import numpy as np

from envs.base import Contact

__all__ = ["link_parents", "neighbours", "read_contacts"]

_TOUCH_N: Final = 0.01
"""Below this SAPIEN lists bodies that are near and do not touch."""


def neighbours(parents: Mapping[str, str | None]) -> frozenset[frozenset[str]]:
    """Pairs of links that touch by construction: at most two joints lie between them.

    Args:
        parents: parent link by link, None for the root.

    >>> pairs = neighbours({"hand": None, "left": "hand", "right": "hand", "tip": "left"})
    >>> frozenset({"left", "right"}) in pairs, frozenset({"tip", "right"}) in pairs
    (True, False)
    """
    near = {
        link: {link, parent, parents.get(parent)} - {None} if parent else {link}
        for link, parent in parents.items()
    }
    return frozenset(
        frozenset({one, two})
        for one, two in combinations(parents, 2)
        if one in near[two]
        or two in near[one]
        or (parents[one] is not None and parents[one] == parents[two])
    )


def link_parents(robot: Any) -> dict[str, str | None]:
    """Parent link by link of a ManiSkill articulation."""
    return {
        link.name: link.joint.parent_link.name if link.joint and link.joint.parent_link else None
        for link in robot.links
    }


def read_contacts(
    scene: Any, names: Mapping[str, str], apart: frozenset[frozenset[str]]
) -> tuple[Contact, ...]:
    """Bodies that touch now, each pair once, in the order of their names.

    Args:
        scene: a ManiSkill scene with one sub-scene on the CPU.
        names: what a body is called, by its name in the simulator; others keep their own.
        apart: pairs of bodies that are left out.

    Returns:
        Contacts with the force of the last physics step.
    """
    impulses: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for contact in scene.px.get_contacts():
        one, two = (body.entity.name.removeprefix("scene-0_") for body in contact.bodies)
        if frozenset({one, two}) in apart:
            continue
        one, two = names.get(one, one), names.get(two, two)
        sign = 1.0 if one <= two else -1.0
        pushes = impulses.setdefault((min(one, two), max(one, two)), [])
        pushes.extend(tuple(sign * point.impulse) for point in contact.points)
    # SAPIEN lists contacts in the order of memory addresses: neither that order nor the rounding
    # of a sum in that order may reach a trace.
    step_s = float(scene.px.timestep)
    forces = {
        pair: float(np.linalg.norm([fsum(axis) for axis in zip(*pushes, strict=True)])) / step_s
        for pair, pushes in sorted(impulses.items())
        if pushes
    }
    return tuple(
        Contact(body_a=one, body_b=two, force_n=force)
        for (one, two), force in forces.items()
        if force > _TOUCH_N
    )
