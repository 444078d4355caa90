"""What distinguishes one tabletop task from another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from envs.tabletop.goal import Goal
from envs.tabletop.rig import Rig
from envs.tabletop.scene import Spread

__all__ = ["TabletopTask"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TabletopTask:
    """A tabletop task: who acts, what is to be done, and how scenes are drawn.

    Attributes:
        rig: the robot and its table.
        goal: what is to be done.
        spread: how scenes are drawn.
        expert: ``module:function`` of the scripted expert.
    """

    rig: Rig
    goal: Goal
    spread: Spread
    expert: str
