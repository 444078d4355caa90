"""ACTION_RANGE: the action leaves its space by more than the tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from monitor.records import Evidence
from monitor.stage import FaultInfo, FaultStage, Setup, StepRow, Vector, array, compiled

INFO = FaultInfo(
    code="ACTION_RANGE",
    family="data",
    meaning="the action is outside its space; what is sent is clipped",
    field="action",
)


@dataclass(slots=True)
class State:
    """Nothing is kept."""

    unused: bool = False


@dataclass(slots=True)
class Limits:
    """The action space with the tolerance on either side."""

    enabled: bool = True
    low: Vector = array("dim", start=-inf)
    high: Vector = array("dim", start=inf)


@dataclass
class Out:
    """1 with a fault, 0 without."""

    action_range: float = 0.0


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> out = Out()
    >>> update(State(), StepRow([1.2], [0.0] * 3, [0.0] * 4), out, Limits(low=[-1.0], high=[1.0]))
    >>> out.action_range
    1.0
    """
    out.action_range = 0.0
    for j in range(len(step.action)):
        if step.action[j] < limits.low[j] or step.action[j] > limits.high[j]:
            out.action_range = 1.0


def configure(setup: Setup) -> Limits:
    """Return the action space with the configured tolerance."""
    slack = setup.config.faults.action_tolerance * (setup.action_high - setup.action_low)
    return Limits(
        low=setup.padded(setup.action_low - slack, -inf),
        high=setup.padded(setup.action_high + slack, inf),
    )


def describe(evidence: Evidence, out: Out, setup: Setup) -> tuple[str, dict[str, Any]]:
    """Say which numbers leave the space."""
    limits, action = configure(setup), evidence.action or ()
    dims = [i for i, x in enumerate(action) if not limits.low[i] <= x <= limits.high[i]]
    text = f"action {list(action)} leaves its space in dims {dims}; what is sent is clipped"
    return text, {"value": [action[i] for i in dims], "dims": dims}


FAULT = FaultStage(
    name="action_range",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
    describe=describe,
)
