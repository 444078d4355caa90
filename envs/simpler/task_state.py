"""What a task is about at this moment: the object, its goal, and whether it is reached.

One class a family of tasks. Each reads SimplerEnv's own environment, here called ``sim``; poses are
in the world, position [m] and quaternion (w, x, y, z), shape ``(7,)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from envs.base import Contact, FloatArray
from envs.simpler.drawer import Drawer, PutInDrawer
from envs.simpler.pick import Pick
from envs.simpler.pick_place import PickPlace
from envs.simpler.tasks import Kind

__all__ = ["TaskState", "task_state"]


class TaskState(Protocol):
    """A family of tasks."""

    def names(self, sim: Any) -> tuple[str, str | None]:
        """Object and goal object by name; both are keys of :meth:`poses`."""
        ...

    def poses(self, sim: Any) -> dict[str, FloatArray]:
        """Pose of everything that matters, in the world."""
        ...

    def bodies(self, sim: Any) -> dict[str, Any]:
        """SAPIEN bodies that the task lays on the table, by name; all must be drawn."""
        ...

    def held(self, sim: Any) -> Any:
        """Body that the fingers should hold."""
        ...

    def success(
        self,
        sim: Any,
        evaluation: Mapping[str, Any],
        contacts: tuple[Contact, ...],
        *,
        grasped: bool,
    ) -> bool:
        """The task is solved now, whatever was true before.

        Args:
            sim: SimplerEnv's environment.
            evaluation: what its ``evaluate`` says.
            contacts: what touches now.
            grasped: the fingers hold what :meth:`held` names.
        """
        ...


def task_state(kind: Kind) -> TaskState:
    """The family of a kind of task."""
    if kind is Kind.PICK:
        return Pick()
    if kind in (Kind.OPEN_DRAWER, Kind.CLOSE_DRAWER):
        return Drawer(closes=kind is Kind.CLOSE_DRAWER)
    return PutInDrawer() if kind is Kind.PUT_IN_DRAWER else PickPlace()
