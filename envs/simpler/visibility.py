"""Objects that are simulated but not rendered (missing visual mesh)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.errors import MonitorError

__all__ = ["NotDrawnError", "not_drawn", "require_table"]


class NotDrawnError(MonitorError, RuntimeError):
    """A file of SimplerEnv's assets is missing; the text says what is not there because of it."""


def not_drawn(bodies: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of bodies without anything to draw.

    SAPIEN 2 only logs that a visual file is missing, and leaves an empty visual body behind.
    """
    return tuple(
        name
        for name, body in bodies.items()
        if not any(visual.get_render_shapes() for visual in body.get_visual_bodies())
    )


def require_table(sim: Any) -> None:
    """Make sure that there is a table for objects to lie on.

    Raises:
        NotDrawnError: if the room's file is missing, so that everything falls for ever.
    """
    if sim.arena is None or not sim.arena.get_collision_shapes():
        msg = (
            f"the table of SimplerEnv's scene {sim.scene_name!r} has no shape: its file is missing "
            f"from {sim.scene_root}/stages, and every object falls; complete the assets (for a "
            "try-out: scripts/simpler_standins.py)"
        )
        raise NotDrawnError(msg)
