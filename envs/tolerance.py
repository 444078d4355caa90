"""How exactly a simulator must follow its commands, for the battery of :mod:`envs.conformance`."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Tolerance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How exactly a simulator must follow its commands.

    Attributes:
        reach_m: error along a commanded way of 5 cm, for an arm that lags its target.
        stray_m: way across the commanded one.
        turn_rad: error of a commanded rotation of 0.2 rad, and rotation about other axes.
        frame_m: change of the base pose that tool poses in world and base frame imply.
        goal_m: difference between the goal distance and the one recomputed from poses; room for
            a goal point that is not the origin of the goal object.
        repeat: difference of numbers between two runs of one episode.
    """

    reach_m: float = 0.015
    stray_m: float = 0.012
    turn_rad: float = 0.06
    frame_m: float = 1e-3
    goal_m: float = 0.04
    repeat: float = 0.0
