"""LATENCY: replies later than the deadline several steps in a row."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

from monitor.records import Evidence
from monitor.stage import FaultInfo, FaultStage, Setup, StepRow, compiled

INFO = FaultInfo(
    code="LATENCY",
    family="latency",
    meaning="the policy is slower than its deadline",
    field="latency_s",
)


@dataclass(slots=True)
class State:
    """Late replies in a row."""

    count: int = 0


@dataclass(slots=True)
class Limits:
    """Late replies that make a fault; the deadline in seconds."""

    enabled: bool = True
    steps: int = 3
    deadline_s: float = 0.2


@dataclass
class Out:
    """Number of late replies in a row, 0 without a fault."""

    latency: float = 0.0


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> state, out, limits = State(), Out(), Limits(steps=2)
    >>> for _ in range(2):
    ...     update(state, StepRow([0.0], [0.0] * 3, [0.0] * 4, latency_s=0.3), out, limits)
    >>> out.latency
    2.0
    """
    if not isnan(step.latency_s):
        state.count = state.count + 1 if step.latency_s > limits.deadline_s else 0
    out.latency = float(state.count) if state.count >= limits.steps else 0.0


def configure(setup: Setup) -> Limits:
    """Return the configured limits."""
    return Limits(steps=setup.config.faults.late_steps, deadline_s=setup.deadline_s)


def describe(evidence: Evidence, out: Out, setup: Setup) -> tuple[str, dict[str, Any]]:
    """Say what was found."""
    text = f"{int(out.latency)} replies in a row later than {setup.deadline_s} s"
    return text, {"value": evidence.latency_s}


FAULT = FaultStage(
    name="latency",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
    describe=describe,
)
