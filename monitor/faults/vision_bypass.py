"""VISION_BYPASS: the same answer to different images.

Equal logits count, or, where the policy gives none, equal actions that move the arm. A commanded
hold is not evidence: images change by light and noise alone, and holding may be right for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan, sqrt
from typing import Any

from monitor.records import Evidence
from monitor.stage import FaultInfo, FaultStage, Setup, StepRow, Vector, array, compiled

INFO = FaultInfo(
    code="VISION_BYPASS",
    family="vision_bypass",
    meaning="the policy answers the same whatever it sees",
    response="recover",
    field="image",
)


@dataclass(slots=True)
class State:
    """The last answer, the image that it was given for, and how many images it has outlived."""

    logits_seen: bool = False
    of_logits: bool = False
    answered: bool = False
    logits_id: float = nan
    image_id: float = nan
    count: int = 1
    action: Vector = array("dim", start=0.0)


@dataclass(slots=True)
class Limits:
    """Different images in a row that make a fault; length of a translation that holds; D."""

    enabled: bool = True
    steps: int = 8
    hold_m: float = 0.002
    dim: int = 7


@dataclass
class Out:
    """Number of different images with the same answer, 0 without a fault."""

    vision_bypass: float = 0.0


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> from monitor.stage import fresh
    >>> state, out, limits = fresh(State, dim=8), Out(), Limits(steps=3)
    >>> for image in (1.0, 2.0, 3.0):
    ...     row = StepRow([0.0] * 8, [nan] * 3, [nan] * 4, logits_id=5.0, image_id=image)
    ...     update(state, row, out, limits)
    >>> out.vision_bypass
    3.0
    """
    out.vision_bypass = 0.0
    of_logits = not isnan(step.logits_id)
    # Where there have been logits, a step without them says nothing.
    answers = of_logits or (not state.logits_seen and not isnan(step.action[0]))
    if of_logits:
        state.logits_seen = True
    elif answers and _holds(step, limits):
        state.answered, state.count = False, 1
        return
    if answers and not isnan(step.image_id):
        same = state.answered and state.of_logits == of_logits and _same(state, step, of_logits)
        if not same:
            state.count = 1
        elif step.image_id != state.image_id:
            state.count += 1
        state.answered, state.of_logits = True, of_logits
        state.image_id, state.logits_id = step.image_id, step.logits_id
        for j in range(len(step.action)):
            state.action[j] = step.action[j]
    if state.count >= limits.steps:
        out.vision_bypass = float(state.count)


@compiled
def _holds(step: StepRow, limits: Limits) -> bool:
    squares = 0.0
    for j in range(min(limits.dim, 3)):
        squares += step.action[j] * step.action[j]
    return sqrt(squares) <= limits.hold_m


@compiled
def _same(state: State, step: StepRow, of_logits: bool) -> bool:
    if of_logits:
        return state.logits_id == step.logits_id
    different = 0
    for j in range(len(step.action)):
        if state.action[j] != step.action[j]:
            different += 1
    return different == 0


def configure(setup: Setup) -> Limits:
    """Return the configured limits."""
    config = setup.config
    return Limits(
        steps=config.faults.blind_steps, hold_m=config.metrics.still_path_m, dim=setup.dim
    )


def describe(evidence: Evidence, out: Out, setup: Setup) -> tuple[str, dict[str, Any]]:
    """Say what was found."""
    count = int(out.vision_bypass)
    return f"the same answer to {count} different images", {"value": count}


FAULT = FaultStage(
    name="vision_bypass",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
    describe=describe,
)
