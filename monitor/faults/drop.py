"""DROP: the task was solved and has not been for a whole window.

A success that comes and goes while the gripper opens is not a drop: fingers touch what they let
go of.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan
from typing import Any

from monitor.records import Evidence
from monitor.stage import FaultInfo, FaultStage, Setup, StepRow, compiled

INFO = FaultInfo(
    code="DROP", family="drop", meaning="the task was solved and no longer is", field="success"
)


@dataclass(slots=True)
class State:
    """Steps so far, the step of the first success, and steps since success was lost."""

    steps: int = 0
    first_success: float = nan
    lost: int = 0


@dataclass(slots=True)
class Limits:
    """Steps without success that make a drop."""

    enabled: bool = True
    steps: int = 8


@dataclass
class Out:
    """Number of steps without success, 0 without a fault, and the step of the first success."""

    drop: float = 0.0
    drop_first_success: float = 0.0


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> state, out = State(), Out()
    >>> for success in (1.0, 0.0, 0.0):
    ...     row = StepRow([0.0], [0.0] * 3, [0.0] * 4, success=success)
    ...     update(state, row, out, Limits(steps=2))
    >>> out.drop
    2.0
    """
    out.drop = out.drop_first_success = 0.0
    if step.success > 0.5:
        if isnan(state.first_success):
            state.first_success = float(state.steps)
        state.lost = 0
    elif not isnan(state.first_success) and (not isnan(step.success) or state.lost > 0):
        state.lost += 1
    if state.lost >= limits.steps:
        out.drop, out.drop_first_success = float(state.lost), state.first_success
    state.steps += 1


def configure(setup: Setup) -> Limits:
    """Return the window as the limit."""
    return Limits(steps=setup.window)


def describe(evidence: Evidence, out: Out, setup: Setup) -> tuple[str, dict[str, Any]]:
    """Say what was found."""
    first = int(out.drop_first_success)
    return f"success of step {first} is lost for {int(out.drop)} steps", {"value": first}


FAULT = FaultStage(
    name="drop",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
    describe=describe,
)
