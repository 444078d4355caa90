"""Pick an object up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

from envs.base import Contact, FloatArray
from envs.pose import pose7

__all__ = ["Pick"]

LIFTED_M: Final = 0.01
"""Rise after which SimplerEnv takes an object for lifted (``grasp_single_in_scene.py``)."""


@final
class Pick:
    """One object; it is solved while the fingers hold it above everything else."""

    def names(self, sim: Any) -> tuple[str, str | None]:
        """The object; there is no goal object."""
        return str(sim.obj.name), None

    def poses(self, sim: Any) -> dict[str, FloatArray]:
        """Pose of the object in the world."""
        return {str(sim.obj.name): pose7(sim.obj.pose)}

    def bodies(self, sim: Any) -> dict[str, Any]:
        """The object."""
        return {str(sim.obj.name): sim.obj}

    def held(self, sim: Any) -> Any:
        """The object."""
        return sim.obj

    def success(
        self,
        sim: Any,
        evaluation: Mapping[str, Any],
        contacts: tuple[Contact, ...],
        *,
        grasped: bool,
    ) -> bool:
        """It is held, has risen, and touches nothing but the robot.

        SimplerEnv's own verdict remembers: an object that was once lifted stays lifted while it is
        held, and five lifted steps make a success for good.
        """
        name = str(sim.obj.name)
        robot = {link.name for link in sim.agent.robot.get_links()}
        touched = {end for contact in contacts if name in contact[:2] for end in contact[:2]}
        rise = float(sim.obj.pose.p[2] - sim.obj_height_after_settle)
        return bool(evaluation["is_grasped"]) and rise > LIFTED_M and touched <= robot | {name}
