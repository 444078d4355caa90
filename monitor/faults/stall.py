"""STALL: the arm is still, the goal is not reached and has not been."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any, Final

from monitor.metrics import stillness
from monitor.records import Evidence
from monitor.stage import FaultInfo, FaultStage, Setup, StepRow, compiled

INFO = FaultInfo(
    code="STALL",
    family="stall",
    meaning="the arm does not move and the goal is not reached",
    response="recover",
    field="tcp_position",
)
SMOOTH: Final = ("A-PI", "A-VI", "A-AI", "TCP-PI", "TCP-VI", "TCP-AI", "TI")
"""Metrics that look best while the arm stalls."""


@dataclass(slots=True)
class State:
    """Windows without motion in a row; whether the task has ever succeeded."""

    count: int = 0
    succeeded: bool = False


@dataclass(slots=True)
class Limits:
    """Windows that make a stall; distance at which the goal counts as reached."""

    enabled: bool = True
    steps: int = 8
    goal_m: float = 0.02


@dataclass
class Out(stillness.Out):
    """Number of windows without motion, 0 without a fault."""

    stall: float = 0.0


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> state, out, limits = State(), Out(still=0.9), Limits(steps=3)
    >>> for _ in range(3):
    ...     update(state, StepRow([0.0], [0.0] * 3, [0.0] * 4), out, limits)
    >>> out.stall
    3.0
    """
    if step.success > 0.5:
        state.succeeded = True
    if state.succeeded or step.goal_distance <= limits.goal_m:
        state.count = 0
    elif not isnan(out.still):
        # STILL = floor / (floor + path) is above a half where the path is below its floor.
        state.count = state.count + 1 if out.still > 0.5 else 0
    out.stall = float(state.count) if state.count >= limits.steps else 0.0


def configure(setup: Setup) -> Limits:
    """Return the configured limits."""
    faults = setup.config.faults
    return Limits(steps=faults.stall_steps, goal_m=faults.stall_goal_m)


def describe(evidence: Evidence, out: Out, setup: Setup) -> tuple[str, dict[str, Any]]:
    """Say what was found."""
    count = int(out.stall)
    text = f"the arm has not moved for {count} windows and the goal is not reached"
    return text, {"value": count, "uninformative": list(SMOOTH)}


FAULT = FaultStage(
    name="stall",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
    describe=describe,
)
