"""CAMERA_FROZEN: the same image while the tool moves.

Identical images are expected where neither the robot nor the scene moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan
from typing import Any

from monitor.metrics.geometry import length
from monitor.records import Evidence
from monitor.stage import FaultInfo, FaultStage, Setup, StepRow, Vector, array, compiled

INFO = FaultInfo(
    code="CAMERA_FROZEN",
    family="camera",
    meaning="the image does not change though the tool moves",
    response="recover",
    field="image",
)


@dataclass(slots=True)
class State:
    """The image, how often it came in a row, the path since, and the last known position."""

    image_id: float = nan
    count: int = 1
    path_m: float = 0.0
    position: Vector = array(3)


@dataclass(slots=True)
class Limits:
    """Equal images that make a fault if the tool has moved farther than ``path_m``."""

    enabled: bool = True
    steps: int = 5
    path_m: float = 0.002


@dataclass
class Out:
    """Number of equal images, 0 without a fault, and the path meanwhile."""

    camera_frozen: float = 0.0
    camera_frozen_path_m: float = 0.0


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> from monitor.stage import fresh
    >>> state, out, limits = fresh(State), Out(), Limits(steps=2)
    >>> for x in (0.0, 0.1):
    ...     update(state, StepRow([0.0], [x, 0.0, 0.0], [nan] * 4, image_id=7.0), out, limits)
    >>> out.camera_frozen, out.camera_frozen_path_m
    (2.0, 0.1)
    """
    out.camera_frozen = out.camera_frozen_path_m = 0.0
    if not isnan(step.image_id) and step.image_id != state.image_id:
        state.image_id, state.count, state.path_m = step.image_id, 1, 0.0
        _keep_position(state, step)
    elif not isnan(state.image_id):
        if not isnan(step.image_id):  # a missing image is not the same one again
            state.count += 1
        if not isnan(step.position[0]):
            _add_path(state, step)
            _keep_position(state, step)
        if state.count >= limits.steps and state.path_m > limits.path_m:
            out.camera_frozen, out.camera_frozen_path_m = float(state.count), state.path_m


@compiled
def _add_path(state: State, step: StepRow) -> None:
    if not isnan(state.position[0]):
        x, y = step.position[0] - state.position[0], step.position[1] - state.position[1]
        state.path_m += length(x, y, step.position[2] - state.position[2])


@compiled
def _keep_position(state: State, step: StepRow) -> None:
    for j in range(3):
        state.position[j] = step.position[j]


def configure(setup: Setup) -> Limits:
    """Return the configured limits."""
    config = setup.config
    return Limits(steps=config.faults.frozen_steps, path_m=config.metrics.still_path_m)


def describe(evidence: Evidence, out: Out, setup: Setup) -> tuple[str, dict[str, Any]]:
    """Say what was found."""
    count, path = int(out.camera_frozen), out.camera_frozen_path_m
    return f"the same image for {count} steps, the tool moved {path:.3f} m", {"value": count}


FAULT = FaultStage(
    name="camera_frozen",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
    describe=describe,
)
