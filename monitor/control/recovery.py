"""What a recovery behaviour is, and how its action is checked."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from monitor.records import FloatArray, Numbers
from monitor.stage import Setup

__all__ = ["Recovery", "RecoveryContext", "recovery_action"]


class RecoveryContext(Struct, frozen=True, kw_only=True):
    """What a recovery behaviour may look at in one step.

    Attributes:
        action: ``(D,)`` what the policy wants to do, None where it is unusable.
        position: ``(3,)`` of the tool in the robot's base frame, metres; None where unknown.
        gripper: Measured opening in [0, 1], None where unknown.
        age: Steps in this attempt, 1 at its first; 0 outside of RECOVER.
        attempt: Number of this attempt in the episode, from 1.
    """

    action: Numbers | None
    position: Numbers | None
    gripper: float | None
    age: int = 0
    attempt: int = 0


class Recovery(Protocol):
    """How one robot recovers; built as ``Recovery(setup)``. It must be picklable.

    What it returns is clipped to the action space before it is sent. An exception, or an action
    that is not finite, halts the robot with the fault RECOVERY_ERROR.
    """

    def reset(self) -> None:
        """Begin an episode; identical to a new instance."""

    def observe(self, context: RecoveryContext, well: bool) -> None:
        """Take a step at which the policy acts; ``well``: mode TASK, a low score, no fault."""

    def act(self, context: RecoveryContext) -> ArrayLike:
        """Return the ``(D,)`` action of a step in RECOVER, environment units."""


def recovery_action(recovery: Recovery, context: RecoveryContext, setup: Setup) -> FloatArray:
    """Return the action of a recovery, clipped to the action space.

    Raises:
        ValueError: It has another shape than ``(D,)``, or is not finite.
    """
    given = np.asarray(recovery.act(context), dtype=np.float64)
    if given.shape != (setup.dim,) or not np.isfinite(given).all():
        shown = np.array2string(given, threshold=20)
        message = f"act() must return {setup.dim} finite numbers, it returned {shown}"
        raise ValueError(message)
    clipped: FloatArray = np.clip(given, setup.action_low, setup.action_high)
    return clipped
