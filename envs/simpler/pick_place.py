"""Bring one object to another: near it, onto it, into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from envs.base import Contact, FloatArray
from envs.pose import pose7

__all__ = ["PickPlace"]


@final
class PickPlace:
    """A source and a target object, perhaps others."""

    def names(self, sim: Any) -> tuple[str, str | None]:
        """Source and target."""
        return str(sim.episode_source_obj.name), str(sim.episode_target_obj.name)

    def poses(self, sim: Any) -> dict[str, FloatArray]:
        """Pose of every object in the world."""
        return {name: pose7(body.pose) for name, body in self.bodies(sim).items()}

    def bodies(self, sim: Any) -> dict[str, Any]:
        """Every object; the sink is furniture and not among them."""
        return {str(body.name): body for body in sim.episode_objs}

    def held(self, sim: Any) -> Any:
        """The source."""
        return sim.episode_source_obj

    def success(
        self,
        sim: Any,
        evaluation: Mapping[str, Any],
        contacts: tuple[Contact, ...],
        *,
        grasped: bool,
    ) -> bool:
        """As SimplerEnv says, and let go; its own verdict is true of an object held over its goal."""
        return bool(evaluation["success"]) and not grasped
