"""GRIPPER_NO_RESPONSE: commanded to close (or open), and the measured opening stays."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan
from typing import Any

from monitor.records import Evidence
from monitor.stage import FaultInfo, FaultStage, Setup, StepRow, compiled
from monitor.stage.gripper import closing

INFO = FaultInfo(
    code="GRIPPER_NO_RESPONSE",
    family="gripper",
    meaning="the gripper does not answer its command",
    field="gripper",
)


@dataclass(slots=True)
class State:
    """The command in force, the opening when it began, and how often it was given; -1: answered."""

    closing: float = nan
    command: float = nan
    start: float = nan
    asked: int = 0


@dataclass(slots=True)
class Limits:
    """Commands that make a fault; change of the opening that answers; how it is commanded."""

    enabled: bool = True
    steps: int = 15
    change: float = 0.05
    column: int = -1
    opens: float = 1.0
    closes: float = -1.0
    relative: bool = False


@dataclass
class Out:
    """Number of commands without an answer, 0 without a fault; the command and the opening."""

    gripper_no_response: float = 0.0
    gripper_closing: float = 0.0
    gripper_start: float = 0.0


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> state, out, limits = State(), Out(), Limits(steps=2, column=0)
    >>> for _ in range(3):
    ...     update(state, StepRow([-1.0], [nan] * 3, [nan] * 4, gripper=0.6), out, limits)
    >>> out.gripper_no_response, out.gripper_start
    (3.0, 0.6)
    """
    out.gripper_no_response = out.gripper_closing = out.gripper_start = 0.0
    if limits.column >= 0 and not isnan(step.action[0]) and not isnan(step.gripper):
        _compare(state, step.action[limits.column], step.gripper, limits)
    if state.asked >= limits.steps:
        out.gripper_no_response = float(state.asked)
        out.gripper_closing, out.gripper_start = state.closing, state.start


@compiled
def _compare(state: State, command: float, opening: float, limits: Limits) -> None:
    wish = closing(command, state.command, limits.opens, limits.closes, limits.relative)
    if not isnan(wish):
        state.command = command
        if wish != state.closing:
            state.closing, state.start, state.asked = wish, opening, 0
    if isnan(state.start) or (isnan(wish) and limits.relative):
        return
    arrived = opening <= limits.change
    if state.closing == 0.0:
        arrived = opening >= 1.0 - limits.change
    if arrived or abs(opening - state.start) > limits.change:
        state.asked = -1  # it has answered; only a new command asks again
    elif state.asked >= 0:
        state.asked += 1


def configure(setup: Setup) -> Limits:
    """Return how the gripper is commanded; actions of up to three numbers have no gripper."""
    config, gripper = setup.config, setup.gripper
    return Limits(
        steps=config.faults.gripper_steps,
        change=config.metrics.gripper_change,
        column=gripper.column(setup.dim) if setup.dim > 3 else -1,
        opens=gripper.opens,
        closes=gripper.closes,
        relative=gripper.relative,
    )


def describe(evidence: Evidence, out: Out, setup: Setup) -> tuple[str, dict[str, Any]]:
    """Say what was found."""
    verb = "close" if out.gripper_closing > 0.0 else "open"
    count, start = int(out.gripper_no_response), out.gripper_start
    return f"commanded to {verb} {count} times, the opening stays at {start}", {"value": start}


FAULT = FaultStage(
    name="gripper_response",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
    describe=describe,
)
