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
    part,
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
class Differences:
    """Differences of ``width`` numbers by order (first, second, third).

    Attributes:
        last: First and second differences of the step before.
        window: Absolute differences of the W - 3 newest steps.
        sums: Sums over the window.
    """

    last: Matrix = array(2, "width", start=0.0)
    window: list[Matrix] = array("window-3", 3, "width", start=0.0)
    sums: Matrix = array(3, "width", start=0.0)


@dataclass(slots=True)
class State:
    """What is kept; each ``*_run`` counts the steps in a row that had the input."""

    steps: int = 0
    oldest: int = 0
    action_run: int = 0
    position_run: int = 0
    orientation_run: int = 0
    normalised: Vector = array("dim", start=0.0)
    position: Vector = array(3)
    orientation: Vector = array(4)
    action_change: Vector = array("dim", start=0.0)
    tool_change: Vector = array(6, start=0.0)
    action: Differences = part(Differences, width="dim")
    tool: Differences = part(Differences, width=6)


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
    _change_action(state, step, limits)
    _change_tool(state, step)
    _keep(state.action, state.action_change, state.oldest)
    _keep(state.tool, state.tool_change, state.oldest)
    state.steps += 1
    state.oldest = (state.oldest + 1) % len(state.action.window)
    window, dim, calm = len(state.action.window) + 3, limits.dim, limits.warmup_is_calm
    if state.action_run >= window:
        _sum(state.action)
    if state.position_run >= window or state.orientation_run >= window:
        _sum(state.tool)
    action, tool, steps = state.action, state.tool, state.steps
    for order in range(3):
        run = state.action_run
        out.action[order] = _mean(action, order, 0, dim, run, steps, calm)
        # Parts that so short an action lacks stay unknown.
        if dim >= 3:
            out.action_translation[order] = _mean(action, order, 0, 3, run, steps, calm)
        if dim >= 6:
            out.action_rotation[order] = _mean(action, order, 3, 6, run, steps, calm)
        shift = _mean(tool, order, 0, 3, state.position_run, steps, calm)
        twist = _mean(tool, order, 3, 6, state.orientation_run, steps, calm)
        out.tool_translation[order], out.tool_rotation[order] = shift, twist
        out.tool[order] = (shift + twist) / 2.0


@compiled
def _change_action(state: State, step: StepRow, limits: Limits) -> None:
    if isnan(step.action[0]):
        state.action_run = 0
        for j in range(len(step.action)):
            state.action_change[j] = 0.0
        return
    state.action_run += 1
    for j in range(len(step.action)):
        x = step.action[j]
        x = limits.low[j] if x < limits.low[j] else x
        x = limits.high[j] if x > limits.high[j] else x
        now = (x - limits.low[j]) / limits.span[j]
        state.action_change[j] = now - state.normalised[j]
        state.normalised[j] = now


@compiled
def _change_tool(state: State, step: StepRow) -> None:
    if isnan(step.position[0]):
        state.position_run = 0
    else:
        state.position_run += 1
        if not isnan(state.position[0]):
            for j in range(3):
                state.tool_change[j] = step.position[j] - state.position[j]
    if isnan(step.orientation[0]):
        state.orientation_run = 0
    else:
        state.orientation_run += 1
        if not isnan(state.orientation[0]):
            x, y, z = rotation_between(state.orientation, step.orientation)
            state.tool_change[3], state.tool_change[4], state.tool_change[5] = x, y, z
    for j in range(3):
        state.position[j] = step.position[j]
    for j in range(4):
        state.orientation[j] = step.orientation[j]


@compiled
def _keep(differences: Differences, change: Vector, at: int) -> None:
    """Put the differences of all orders where the oldest stand."""
    last, newest = differences.last, differences.window[at]
    for j in range(len(change)):
        first = change[j]
        second = first - last[0][j]
        third = second - last[1][j]
        last[0][j], last[1][j] = first, second
        newest[0][j], newest[1][j], newest[2][j] = abs(first), abs(second), abs(third)


@compiled
def _sum(differences: Differences) -> None:
    """Add the window up in the order in which it is stored."""
    sums, window = differences.sums, differences.window
    for order in range(3):
        for j in range(len(sums[order])):
            total = window[0][order][j]
            for k in range(1, len(window)):
                total += window[k][order][j]
            sums[order][j] = total


@compiled
def _mean(
    differences: Differences, order: int, begin: int, end: int, run: int, steps: int, calm: bool
) -> float:
    """Return the mean over some columns, or what stands for it while the window is not full."""
    count = len(differences.window)
    if run < count + 3:
        return 0.0 if calm and run == steps else nan
    total = 0.0
    for j in range(begin, end):
        total += differences.sums[order][j]
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
