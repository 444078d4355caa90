"""Mode and action of N robots: the controller and the shipped retreat in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan

from monitor.config import MonitorConfig
from monitor.control.controller import (
    HALT,
    RECOVER,
    TASK,
    ControllerLimits,
    ControllerState,
    aggregate,
    transition,
)
from monitor.control.retreat import (
    RetreatLimits,
    RetreatState,
    act,
    begin,
    clip,
    note_command,
    remember,
)
from monitor.engine.passes import Call, Pass
from monitor.stage import Setup, Vector, array, compiled, part

__all__ = ["control_pass"]


@dataclass(slots=True)
class Row:
    """What decides one step.

    Attributes:
        score: Score of the step, NaN while unknown.
        demand: A :class:`monitor.control.Demand`.
        faulty: Whether there is any fault.
        out_of_range: Whether the action is to be clipped.
        gripper: Measured opening, NaN where unknown.
        position: Position of the tool, NaN where unknown.
        action: What the policy wants, NaN where unusable.
    """

    score: float = nan
    demand: float = 0.0
    faulty: float = 0.0
    out_of_range: float = 0.0
    gripper: float = nan
    position: Vector = array(3)
    action: Vector = array("dim", start=0.0)


@dataclass(slots=True)
class State:
    """State of the controller and of the retreat."""

    controller: ControllerState = part(ControllerState)
    retreat: RetreatState = part(RetreatState)


@dataclass(slots=True)
class Limits:
    """Limits of the controller and of the retreat, and what the mode may do.

    Attributes:
        enforce: Whether modes act; otherwise the monitor only watches.
        recovers: Whether the shipped retreat acts in RECOVER.
        steps: Steps of one retreat.
        calm_below: Score below which a step is safe.
    """

    enforce: bool = True
    recovers: bool = True
    steps: int = 6
    calm_below: float = 0.4
    controller: ControllerLimits = part(ControllerLimits)
    retreat: RetreatLimits = part(RetreatLimits)


@dataclass(slots=True)
class Out:
    """What was decided.

    Attributes:
        score: The score that decided.
        mode: Index into :data:`monitor.control.MODES`.
        attempts: Attempts at recovery so far.
        age: Steps in this attempt.
        changed: Whether the mode or the attempt began at this step.
        well: Whether all is well: TASK, a low score, no fault.
        recovering: Whether a recovery acts at this step, not the policy.
        forget: Whether signals of the robot's own motion are void from now on.
        sendable: Whether the action may be sent.
        action: What may be sent.
    """

    score: float = nan
    mode: float = 0.0
    attempts: float = 0.0
    age: float = 0.0
    changed: float = 0.0
    well: float = 0.0
    recovering: float = 0.0
    forget: float = 0.0
    sendable: float = 0.0
    action: Vector = array("dim", start=0.0)


@compiled
def control(state: State, row: Row, out: Out, limits: Limits) -> None:
    """Take one step."""
    controller = state.controller
    mode, attempts = controller.mode, controller.attempts
    out.score = aggregate(controller, row.score, limits.controller)
    transition(controller, out.score, row.demand, limits.controller)
    out.mode, out.attempts = float(controller.mode), float(controller.attempts)
    out.age = float(controller.age)
    out.changed = 1.0 if controller.mode != mode or controller.attempts != attempts else 0.0
    calm = not out.score >= limits.calm_below
    out.well = 1.0 if controller.mode == TASK and calm and row.faulty == 0.0 else 0.0
    recovering = limits.enforce and limits.recovers and controller.mode == RECOVER
    out.recovering = 1.0 if recovering else 0.0
    out.forget = 1.0 if recovering and controller.age == limits.steps + 1 else 0.0
    _act(state, row, out, limits)


@compiled
def _act(state: State, row: Row, out: Out, limits: Limits) -> None:
    """Write the action that may be sent."""
    back, bounds, mode = state.retreat, limits.retreat, state.controller.mode
    usable = not isnan(row.action[0])
    halted = mode == HALT
    out.sendable = 1.0
    if halted and (limits.enforce or not usable):
        out.sendable = 0.0
        for j in range(len(out.action)):
            out.action[j] = 0.0
        clip(out.action, bounds)
        return
    if out.recovering > 0.0:
        age = state.controller.age
        if age == 1:
            begin(back, row.position, bounds)
        act(back, row.position, row.gripper, age <= limits.steps, bounds, out.action)
        return
    note_command(back, row.action, bounds)
    if out.well > 0.0:
        remember(back, row.position, bounds)
    if not usable:
        # Nothing usable was asked for and the configuration does not halt: hold the position.
        act(back, row.position, row.gripper, False, bounds, out.action)
        return
    for j in range(len(out.action)):
        out.action[j] = row.action[j]
    if row.out_of_range > 0.0:
        clip(out.action, bounds)


def control_pass(setup: Setup, limits: ControllerLimits, n: int) -> Pass:
    """Return the pass over N robots."""
    config: MonitorConfig = setup.config
    memory = config.recovery.memory
    return Pass(
        [Call(name="control", function=control)],
        state=State,
        row=Row,
        out=Out,
        limits=Limits(
            enforce=config.controller.enforce,
            recovers=config.recovery.enabled,
            steps=config.recovery.steps,
            calm_below=limits.tau_recover - limits.hysteresis,
            controller=limits,
            retreat=RetreatLimits.of(setup),
        ),
        sizes={**setup.sizes, "memory": memory, "waypoints": memory + 1},
        n=n,
    )
