"""A fault: the reported position of the tool moves farther in one step than the arm can.

In the monitor's configuration: ``faults: {plugins: ["pose_jump:FAULT"]}``.
"""

from dataclasses import dataclass
from math import isnan
from typing import Any

from monitor import Evidence
from monitor.metrics.geometry import length
from monitor.stage import FaultInfo, FaultStage, Setup, StepRow, Vector, array, compiled

INFO = FaultInfo(
    code="POSE_JUMP",
    family="pose_jump",
    meaning="the tool's position jumps farther than the arm can move",
    response="alert",
    field="tcp_position",
    source="example",
)


@dataclass
class State:
    """The last known position."""

    position: Vector = array(3)


@dataclass
class Limits:
    """Speed that the arm cannot exceed, as a step in metres."""

    enabled: bool = True
    step_m: float = 0.2


@dataclass
class Out:
    """Length of the jump in metres, 0 without a fault."""

    pose_jump_m: float = 0.0


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step; a missing position is not compared."""
    out.pose_jump_m = 0.0
    now, before = step.position, state.position
    if isnan(now[0]):
        return
    jump = length(now[0] - before[0], now[1] - before[1], now[2] - before[2])
    if jump > limits.step_m:
        out.pose_jump_m = jump
    for j in range(3):
        before[j] = now[j]


def configure(setup: Setup) -> Limits:
    """Return the limit for 1 m/s, a generous speed for a tabletop arm."""
    return Limits(step_m=1.0 * setup.control_dt_s)


def describe(evidence: Evidence, out: Out, setup: Setup) -> tuple[str, dict[str, Any]]:
    """Say what was found."""
    jump = out.pose_jump_m
    return f"the tool jumped {jump:.3f} m in one step", {"value": jump}


FAULT = FaultStage(
    name="pose_jump",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
    describe=describe,
)
