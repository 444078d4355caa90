"""CAMERA_BLACK: the image is flat, as of a covered lens or a camera that is off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.records import Evidence
from monitor.stage import FaultInfo, FaultStage, Setup, StepRow, compiled

INFO = FaultInfo(
    code="CAMERA_BLACK",
    family="camera",
    meaning="the image has no contrast",
    response="recover",
    field="image",
)


@dataclass(slots=True)
class State:
    """Nothing is kept."""

    unused: bool = False


@dataclass(slots=True)
class Limits:
    """Least standard deviation of an image that shows something, on the scale 0 to 255."""

    enabled: bool = True
    least_std: float = 1.0


@dataclass
class Out:
    """1 with a fault, 0 without."""

    camera_black: float = 0.0


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> out = Out()
    >>> update(State(), StepRow([0.0], [0.0] * 3, [0.0] * 4, image_std=0.5), out, Limits())
    >>> out.camera_black
    1.0
    """
    out.camera_black = 1.0 if step.image_std < limits.least_std else 0.0


def configure(setup: Setup) -> Limits:
    """Return the configured limit."""
    return Limits(least_std=setup.config.faults.black_std)


def describe(evidence: Evidence, out: Out, setup: Setup) -> tuple[str, dict[str, Any]]:
    """Say what was found."""
    std = evidence.image_std
    return f"the image is flat: standard deviation {std:.3g} of 255", {"value": std}


FAULT = FaultStage(
    name="camera_black",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
    describe=describe,
)
