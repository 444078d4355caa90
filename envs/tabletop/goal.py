"""What a tabletop task wants: the contract of a goal, its furniture and its verdict."""

from __future__ import annotations

from typing import Any, Protocol

from envs.tabletop.rig import Rig
from envs.tabletop.scene import Scene

__all__ = ["Goal", "Table"]


class Table(Protocol):
    """What a goal may read of the simulator.

    Attributes:
        rig: the robot and its table.
        scene: ManiSkill's scene.
        table_scene: which objects are on the table, and where they began.
        objects: ManiSkill's actors by role.
        furniture: the goal's own body; None where the goal has none.
    """

    rig: Rig
    scene: Any
    table_scene: Scene
    objects: dict[str, Any]
    furniture: Any


class Goal(Protocol):
    """What is to be done with the named object.

    Attributes:
        kind: kind of task, the key of calibrations and rules.
        furniture: name of what stands on the table as the goal; None where there is none.
        origin_m: height of its origin over the table.
        top_m: height over the origin of the goal body at which an object comes to rest.
    """

    @property
    def kind(self) -> str: ...  # noqa: D102

    @property
    def furniture(self) -> str | None: ...  # noqa: D102

    @property
    def origin_m(self) -> float: ...  # noqa: D102

    @property
    def top_m(self) -> float: ...  # noqa: D102

    def build(self, scene: Any) -> Any:
        """Build the furniture in a ManiSkill scene; None where there is none."""
        ...

    def reached(self, table: Table, role: str, held: bool) -> bool:
        """Whether the object of this role is where the named one should be, now.

        Args:
            table: the simulator.
            role: key of ``table.objects``.
            held: the fingers hold it.
        """
        ...
