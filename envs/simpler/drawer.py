"""Open a drawer, close it, or put an object into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

from envs.base import Contact, FloatArray
from envs.pose import inverse, multiply, pose7

__all__ = ["Drawer", "PutInDrawer"]

OPEN_M: Final = 0.15
CLOSED_M: Final = 0.05
"""Ways of the drawer from which SimplerEnv takes it for open and for closed, and at which an object
counts as put into it (``open_drawer_in_scene.py``, ``place_in_closed_drawer_in_scene.py``)."""
HANDLE: Final = (0.3425, 0.0, 0.02, 1.0, 0.0, 0.0, 0.0)
"""The middle of the handle in the frame of its drawer, which slides along x (``mk_station*.urdf``)."""
INSIDE: Final = ((-0.275, 0.275), (-0.2575, 0.2575), (-0.06, 0.07))
"""Room inside a drawer in its own frame, metres along x, y and z (the same file)."""


def _way_m(sim: Any) -> float:
    """How far the drawer is pulled out."""
    return float(sim.art_obj.get_qpos()[sim.joint_idx])


def _pulled(drawer: FloatArray, way_m: float) -> FloatArray:
    """Pose of the drawer after a further way along its own x axis."""
    return multiply(drawer, [way_m, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


def _handles(sim: Any) -> dict[str, FloatArray]:
    """Pose of the handle of each drawer in the world, by the drawer's name."""
    links = {str(link.name): link for link in sim.art_obj.get_links()}
    return {
        name: multiply(pose7(links[name].pose), HANDLE)
        for name in (joint.removesuffix("_joint") for joint in sim.joint_names)
    }


@final
class Drawer:
    """The object is the drawer's handle; its goal is where the handle is when the way is made."""

    def __init__(self, *, closes: bool) -> None:
        self._closes = closes

    def names(self, sim: Any) -> tuple[str, str | None]:
        """The drawer and the place that its handle should reach."""
        return f"{sim.drawer_id}_drawer", f"{sim.drawer_id}_drawer_goal"

    def poses(self, sim: Any) -> dict[str, FloatArray]:
        """Pose of every drawer's handle now and of this one's at the goal, in the world."""
        way_m = _way_m(sim)
        end_m = min(CLOSED_M, way_m) if self._closes else max(OPEN_M, way_m)
        _, goal = self.names(sim)
        ended = multiply(_pulled(pose7(sim.drawer_obj.pose), end_m - way_m), HANDLE)
        return {**_handles(sim), str(goal): ended}

    def bodies(self, sim: Any) -> dict[str, Any]:
        """Nothing lies on the table."""
        return {}

    def held(self, sim: Any) -> Any:
        """The drawer."""
        return sim.drawer_obj

    def success(
        self,
        sim: Any,
        evaluation: Mapping[str, Any],
        contacts: tuple[Contact, ...],
        *,
        grasped: bool,
    ) -> bool:
        """As SimplerEnv says."""
        return bool(evaluation["success"])


@final
class PutInDrawer:
    """First the drawer is to be opened, then the object is to be put into it.

    SimplerEnv turns to the second part after 100 steps; then instruction, object and goal change.
    """

    def __init__(self) -> None:
        self._opening = Drawer(closes=False)

    def names(self, sim: Any) -> tuple[str, str | None]:
        """Drawer and its goal, then object and drawer."""
        if not sim.is_final_subtask():
            return self._opening.names(sim)
        return str(sim.obj.name), f"{sim.drawer_id}_drawer"

    def poses(self, sim: Any) -> dict[str, FloatArray]:
        """Pose of the object, and of the drawer: its handle, later the middle of it."""
        obj = {str(sim.obj.name): pose7(sim.obj.pose)}
        if not sim.is_final_subtask():
            return {**self._opening.poses(sim), **obj}
        return {**obj, f"{sim.drawer_id}_drawer": pose7(sim.drawer_obj.pose)}

    def bodies(self, sim: Any) -> dict[str, Any]:
        """The object."""
        return {str(sim.obj.name): sim.obj}

    def held(self, sim: Any) -> Any:
        """Drawer, then object."""
        return sim.obj if sim.is_final_subtask() else sim.drawer_obj

    def success(
        self,
        sim: Any,
        evaluation: Mapping[str, Any],
        contacts: tuple[Contact, ...],
        *,
        grasped: bool,
    ) -> bool:
        """It lies in the open drawer, touches it and is let go; SimplerEnv remembers a touch."""
        if grasped or not sim.is_final_subtask() or _way_m(sim) < CLOSED_M:
            return False
        pair = {str(sim.obj.name), f"{sim.drawer_id}_drawer"}
        place = multiply(inverse(pose7(sim.drawer_obj.pose)), pose7(sim.obj.pose))[:3]
        inside = all(low <= at <= high for at, (low, high) in zip(place, INSIDE, strict=True))
        return inside and any(set(contact[:2]) == pair for contact in contacts)
