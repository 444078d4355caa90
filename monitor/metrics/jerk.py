"""TI: jerk of the tool's path, the third derivative of its position at step t - 2.

Valle et al., arXiv 2507.17049.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan

import numpy as np

from monitor.metrics.geometry import length
from monitor.records import FloatArray
from monitor.stage import (
    Matrix,
    MetricInfo,
    MetricStage,
    Setup,
    StepRow,
    Vector,
    array,
    compiled,
)

INFO = MetricInfo(
    id="TI",
    meaning="jerk of the tool's path at step t - 2",
    unit="m/step^3",
    high=None,
    warmup=8,
    needs=("tcp_position",),
    typical=(0.004, 0.012, 0.02),
    of_motion=True,
    column="jerk",
)


def jerk_weights(window: int) -> FloatArray:
    """Return ``(window,)`` weights whose sum with the positions is TI's third derivative.

    Three successive central differences (one-sided at the ends), read at the third element from
    the end, so the value belongs to step t - 2.

    >>> jerk_weights(8).tolist()
    [0.0, 0.0, -0.125, 0.0, 0.375, 0.0, -0.5, 0.25]
    """
    grid: FloatArray = np.eye(window)
    for _ in range(3):
        grid = np.asarray(np.gradient(grid, axis=0))
    weights: FloatArray = grid[-3].copy()
    return weights


@dataclass(slots=True)
class State:
    """Steps so far, steps in a row with a position, and a ring of positions."""

    steps: int = 0
    run: int = 0
    next: int = 0
    positions: Matrix = array("window", 3, start=0.0)


@dataclass(slots=True)
class Limits:
    """:func:`jerk_weights` over the cube of the time unit; whether the warm-up counts as calm."""

    warmup_is_calm: bool = False
    weights: Vector = array("window", start=0.0)


@dataclass
class Out:
    """The jerk, NaN while the window is not full."""

    jerk: float = nan


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> from monitor.stage import fresh
    >>> state, out = fresh(State, window=4), Out()
    >>> limits = Limits(weights=[-1.0, 3.0, -3.0, 1.0])
    >>> for t in range(4):
    ...     update(state, StepRow([0.0], [t**3, 0.0, 0.0], [nan] * 4), out, limits)
    >>> out.jerk
    6.0
    """
    positions, newest, window = state.positions, state.next, len(state.positions)
    for j in range(3):
        positions[newest][j] = step.position[j]
    state.next = (newest + 1) % window
    state.steps += 1
    state.run = 0 if isnan(step.position[0]) else state.run + 1
    if state.run < window:
        out.jerk = 0.0 if limits.warmup_is_calm and state.run == state.steps else nan
        return
    x = y = z = 0.0
    at = state.next
    for j in range(window):  # oldest first
        weight, position = limits.weights[j], positions[at]
        x += weight * position[0]
        y += weight * position[1]
        z += weight * position[2]
        at = at + 1 if at + 1 < window else 0
    out.jerk = length(x, y, z)


def configure(setup: Setup) -> Limits:
    """Return the weights for the configured window and time unit."""
    metrics = setup.config.metrics
    weights = jerk_weights(metrics.window) / metrics.ti_dt_s**3
    return Limits(warmup_is_calm=metrics.warmup == "zeros", weights=weights.tolist())


METRIC = MetricStage(
    name="jerk",
    info=(INFO,),
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
)
