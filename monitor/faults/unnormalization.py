"""UNNORM_MISMATCH: translations larger than the training data's, most of the time."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isnan
from typing import Any

from monitor.records import Evidence
from monitor.stage import FaultInfo, FaultStage, Setup, StepRow, Vector, array, compiled
from monitor.stage.row import padded

INFO = FaultInfo(
    code="UNNORM_MISMATCH",
    family="unnormalisation",
    meaning="actions are scaled by the statistics of another data set",
    response="halt",
    field="action",
)


@dataclass(slots=True)
class State:
    """A ring of how many translations were too large, and how many steps are known."""

    count: int = 0
    beyond: Vector = array("window", start=0.0)


@dataclass(slots=True)
class Limits:
    """Largest usual size per dimension, the number of dimensions, the share that makes a fault."""

    enabled: bool = True
    dims: int = 3
    share: float = 0.5
    usual: Vector = array("dim", start=inf)


@dataclass
class Out:
    """Share of the window's translations beyond their limits, 0 without a fault."""

    unnorm_mismatch: float = 0.0


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> from monitor.stage import fresh
    >>> state, out = fresh(State, window=4), Out()
    >>> limits = Limits(dims=1, usual=[0.1])
    >>> for x in (0.2, 0.2, 0.0, 0.2):
    ...     update(state, StepRow([x], [0.0] * 3, [0.0] * 4), out, limits)
    >>> out.unnorm_mismatch
    0.75
    """
    window = len(state.beyond)
    if not isnan(step.action[0]):
        beyond = 0.0
        for j in range(limits.dims):
            beyond += 1.0 if abs(step.action[j]) > limits.usual[j] else 0.0
        state.beyond[state.count % window] = beyond
        state.count += 1
    out.unnorm_mismatch = 0.0
    if state.count >= window:
        total = 0.0
        for j in range(window):
            total += state.beyond[j]
        share = total / (window * limits.dims)
        out.unnorm_mismatch = share if share > limits.share else 0.0


def configure(setup: Setup) -> Limits:
    """Return the limits of the policy's training data, or of the action space."""
    usual = list(setup.translation_limits)[: setup.dim]
    size = padded(setup.dim)
    return Limits(
        dims=len(usual),
        share=setup.config.faults.unnorm_share,
        usual=[*usual, *[inf] * (size - len(usual))],
    )


def describe(evidence: Evidence, out: Out, setup: Setup) -> tuple[str, dict[str, Any]]:
    """Say what was found."""
    share, limits = out.unnorm_mismatch, list(setup.translation_limits)
    text = f"{share:.0%} of the translations exceed {limits}: which unnorm_key is it?"
    return text, {"value": share}


FAULT = FaultStage(
    name="unnormalization",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
    describe=describe,
)
