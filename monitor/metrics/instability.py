"""Instability of the action and of the tool's pose: mean differences over the window.

Valle et al., arXiv 2507.17049: the first, second and third differences (PI, VI, AI) are divided
by 1, 2 and 4, so that each stays in [0, 1] for inputs in [0, 1]; the paper gives no reason, but
2^(k-1) is the largest k-th difference of such values. All three average the W - 3 newest
differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan

import numpy as np

from monitor.metrics.geometry import rotation_between
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

POSE = ("tcp_position", "tcp_quaternion")
ORDERS = ("PI", "VI", "AI")
WORDS = ("first", "second", "third")
TYPICAL = {
    "A": ((0.05, 0.12, 0.2), (0.04, 0.10, 0.16), (0.04, 0.09, 0.15)),
    "TCP": ((0.015, 0.03, 0.05), (0.004, 0.009, 0.014), (0.003, 0.007, 0.011)),
}


def _infos() -> tuple[MetricInfo, ...]:
    action, tool = "normalised actions", "the tool's pose"
    kinds = (
        ("A", "", "action", f"{action}; all dimensions", "1", ("action",)),
        ("A", "_p", "action_translation", f"{action}; position", "1", ("action",)),
        ("A", "_o", "action_rotation", f"{action}; orientation", "1", ("action",)),
        ("TCP", "", "tool", f"{tool}; all dimensions", "m, rad", POSE),
        ("TCP", "_p", "tool_translation", f"{tool}; position", "m", POSE[:1]),
        ("TCP", "_o", "tool_rotation", f"{tool}; orientation", "rad", POSE[1:]),
    )
    return tuple(
        MetricInfo(
            id=f"{what}-{ORDERS[order]}{which}",
            meaning=f"mean {WORDS[order]} difference of {meaning}",
            unit=unit,
            high=1.0 if what == "A" else None,
            warmup=8,
            needs=needs,
            typical=TYPICAL[what][order],
            of_motion=True,
            column=column,
            index=order,
        )
        for order in range(3)
        for what, which, column, meaning, unit, needs in kinds
    )


@dataclass(slots=True)
class State:
    """What is kept of the numbers of the action, then of the tool's position and rotation.

    Attributes:
        action_run: Steps in a row with an action; the other runs likewise.
        normalised: The last action on [0, 1].
        change: First differences of this step, the last known ones where there is none.
        last: First and second differences of the step before.
        window: Absolute differences by order (first, second, third) of the W - 3 newest steps.
        sums: Sums over the window.
    """

    steps: int = 0
    oldest: int = 0
    action_run: int = 0
    position_run: int = 0
    orientation_run: int = 0
    normalised: Vector = array("dim", start=0.0)
    position: Vector = array(3)
    orientation: Vector = array(4)
    change: Vector = array("dim+6", start=0.0)
    last: Matrix = array(2, "dim+6", start=0.0)
    window: list[Matrix] = array("window-3", 3, "dim+6", start=0.0)
    sums: Matrix = array(3, "dim+6", start=0.0)


@dataclass(slots=True)
class Limits:
    """The action space, D, and whether the warm-up counts as calm (as published) or as unknown."""

    dim: int = 7
    warmup_is_calm: bool = False
    low: Vector = array("dim", start=-1.0)
    span: Vector = array("dim", start=2.0)
    high: Vector = array("dim", start=1.0)


@dataclass
class Out:
    """PI, VI and AI of each part."""

    action: Vector = array(3)
    action_translation: Vector = array(3)
    action_rotation: Vector = array(3)
    tool: Vector = array(3)
    tool_translation: Vector = array(3)
    tool_rotation: Vector = array(3)


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> from monitor.stage import fresh
    >>> sizes = {"window": 4, "dim": 1}
    >>> state, out, limits = fresh(State, **sizes), fresh(Out), fresh(Limits, **sizes)
    >>> limits.dim = 1
    >>> for x in (-1.0, 1.0, -1.0, 1.0):
    ...     update(state, StepRow([x], [nan] * 3, [nan] * 4), out, limits)
    >>> out.action
    [1.0, 1.0, 1.0]
    """
    tool = len(step.action)
    _change_action(state, step, limits)
    _change_tool(state, step, tool)
    _keep(state)
    state.steps += 1
    window, dim, calm = len(state.window) + 3, limits.dim, limits.warmup_is_calm
    action, position, orientation = state.action_run, state.position_run, state.orientation_run
    if max(action, position, orientation) >= window:
        _sum(state)
    for order in range(3):
        out.action[order] = _mean(state, order, 0, dim, action, calm)
        # Parts that so short an action lacks stay unknown.
        if dim >= 3:
            out.action_translation[order] = _mean(state, order, 0, 3, action, calm)
        if dim >= 6:
            out.action_rotation[order] = _mean(state, order, 3, 6, action, calm)
        shift = _mean(state, order, tool, tool + 3, position, calm)
        twist = _mean(state, order, tool + 3, tool + 6, orientation, calm)
        out.tool_translation[order], out.tool_rotation[order] = shift, twist
        out.tool[order] = (shift + twist) / 2.0


@compiled
def _change_action(state: State, step: StepRow, limits: Limits) -> None:
    if isnan(step.action[0]):
        state.action_run = 0
        for j in range(len(step.action)):
            state.change[j] = 0.0
        return
    state.action_run += 1
    for j in range(len(step.action)):
        x = step.action[j]
        x = limits.low[j] if x < limits.low[j] else x
        x = limits.high[j] if x > limits.high[j] else x
        now = (x - limits.low[j]) / limits.span[j]
        state.change[j] = now - state.normalised[j]
        state.normalised[j] = now


@compiled
def _change_tool(state: State, step: StepRow, at: int) -> None:
    if isnan(step.position[0]):
        state.position_run = 0
    else:
        state.position_run += 1
        if not isnan(state.position[0]):
            for j in range(3):
                state.change[at + j] = step.position[j] - state.position[j]
    if isnan(step.orientation[0]):
        state.orientation_run = 0
    else:
        state.orientation_run += 1
        if not isnan(state.orientation[0]):
            x, y, z = rotation_between(state.orientation, step.orientation)
            state.change[at + 3], state.change[at + 4], state.change[at + 5] = x, y, z
    for j in range(3):
        state.position[j] = step.position[j]
    for j in range(4):
        state.orientation[j] = step.orientation[j]


@compiled
def _keep(state: State) -> None:
    """Put the differences of all orders where the oldest stand."""
    last, newest = state.last, state.window[state.oldest]
    for j in range(len(state.change)):
        first = state.change[j]
        second = first - last[0][j]
        third = second - last[1][j]
        last[0][j], last[1][j] = first, second
        newest[0][j], newest[1][j], newest[2][j] = abs(first), abs(second), abs(third)
    state.oldest = (state.oldest + 1) % len(state.window)


@compiled
def _sum(state: State) -> None:
    """Add the window up in the order in which it is stored."""
    sums, window = state.sums, state.window
    for order in range(3):
        for j in range(len(sums[order])):
            total = window[0][order][j]
            for k in range(1, len(window)):
                total += window[k][order][j]
            sums[order][j] = total


@compiled
def _mean(state: State, order: int, begin: int, end: int, run: int, calm: bool) -> float:
    """Return the mean over some columns, or what stands for it while the window is not full."""
    count = len(state.window)
    if run < count + 3:
        return 0.0 if calm and run == state.steps else nan
    total = 0.0
    for j in range(begin, end):
        total += state.sums[order][j]
    return total / (count * (end - begin)) / (1 << order)


def configure(setup: Setup) -> Limits:
    """Return the limits of an action space."""
    low, high = setup.action_low, setup.action_high
    span = np.where(high > low, high - low, 1.0)
    return Limits(
        dim=setup.dim,
        warmup_is_calm=setup.config.metrics.warmup == "zeros",
        low=setup.padded(low, 0.0),
        high=setup.padded(high, 0.0),
        span=setup.padded(span, 1.0),
    )


METRIC = MetricStage(
    name="instability",
    info=_infos(),
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
)
