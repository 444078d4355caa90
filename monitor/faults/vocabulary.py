"""OFF_VOCAB_TOKEN: a likeliest or chosen token is not an action bin, or the bins hold little."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

from monitor.records import Evidence
from monitor.stage import FaultInfo, FaultStage, Setup, StepRow, compiled

INFO = FaultInfo(
    code="OFF_VOCAB_TOKEN",
    family="vocabulary",
    meaning="the policy prefers tokens that are not actions",
    field="token_logits",
)


@dataclass(slots=True)
class State:
    """Nothing is kept."""

    unused: bool = False


@dataclass(slots=True)
class Limits:
    """Least probability that a token's bins must hold together."""

    enabled: bool = True
    least_mass: float = 0.5


@dataclass
class Out:
    """1 with a fault, 0 without."""

    off_vocabulary: float = 0.0


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> out = Out()
    >>> update(State(), StepRow([0.0], [0.0] * 3, [0.0] * 4, action_mass=0.1), out, Limits())
    >>> out.off_vocabulary
    1.0
    """
    mass = step.action_mass
    outside = not isnan(mass) and step.tokens_outside > 0.0
    out.off_vocabulary = 1.0 if mass < limits.least_mass or outside else 0.0


def configure(setup: Setup) -> Limits:
    """Return the configured limit."""
    return Limits(least_mass=setup.config.faults.bin_mass)


def describe(evidence: Evidence, out: Out, setup: Setup) -> tuple[str, dict[str, Any]]:
    """Say what was found."""
    mass, outside = evidence.signals["action_mass"], evidence.signals.get("tokens_outside") or 0.0
    text = f"{outside:.0f} tokens outside the action bins; least mass on the bins {mass:.3f}"
    return text, {"value": mass}


FAULT = FaultStage(
    name="vocabulary",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
    describe=describe,
)
