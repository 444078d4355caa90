"""What a tabletop task wants: the contract of a goal, its furniture and its verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from envs.tabletop.simulator import Tabletop

__all__ = ["Goal"]


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

    def reached(self, table: Tabletop, role: str, held: bool) -> bool:
        """Whether the object of this role is where the named one should be, now.

        Args:
            table: the simulator.
            role: key of ``table.objects``.
            held: the fingers hold it.
        """
        ...
