"""STILL: 1 where the tool's path over the window is short and the gripper rests.

``floor / (floor + path)``, so it is one half where the path equals the floor. TCP-path and TCP-net
are reported with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan

from monitor.metrics.geometry import length
from monitor.metrics.ring import path_of, spread_of
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
from monitor.stage.info import OWN, VALLE

POSITION = ("tcp_position",)
INFO = (
    MetricInfo(
        id="TCP-path",
        meaning="length of the tool's path over the window; a report, not a judgement",
        unit="m",
        high=None,
        warmup=8,
        needs=POSITION,
        source=VALLE,
        of_motion=True,
        column="path_m",
    ),
    MetricInfo(
        id="TCP-net",
        meaning="displacement over the window; a report, not a judgement",
        unit="m",
        high=None,
        warmup=8,
        needs=POSITION,
        source=VALLE,
        of_motion=True,
        column="net_m",
    ),
    MetricInfo(
        id="STILL",
        meaning="floor / (floor + path): 1 = the arm does not move, 0 while the gripper does",
        warmup=8,
        needs=POSITION,
        source=OWN,
        typical=(0.08, 0.30, 0.60),
        of_motion=True,
        right_after_success=True,
        column="still",
    ),
)


@dataclass(slots=True)
class State:
    """Rings over the window, and how many steps in a row had a position or a goal distance."""

    next: int = 0
    position_run: int = 0
    goal_run: int = 0
    last_goal: float = nan
    positions: Matrix = array("window", 3, start=0.0)
    lengths: Vector = array("window", start=0.0)
    goal_lengths: Vector = array("window", start=0.0)
    openings: Vector = array("window")
    commands: Vector = array("window")


@dataclass(slots=True)
class Limits:
    """Path that counts as none, change of the opening that counts, the gripper's column."""

    path_m: float = 0.002
    gripper_change: float = 0.05
    gripper_column: int = -1


@dataclass
class Out:
    """Stillness, path and displacement, NaN while the window is not full."""

    still: float = nan
    path_m: float = nan
    net_m: float = nan


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> from monitor.stage import fresh
    >>> state, out, limits = fresh(State, window=4), Out(), Limits(path_m=0.003)
    >>> for t in range(4):
    ...     update(state, StepRow([0.0], [0.001 * t, 0.0, 0.0], [nan] * 4), out, limits)
    >>> round(out.path_m, 6), round(out.still, 6)
    (0.003, 0.5)
    """
    newest, window = state.next, len(state.lengths)
    oldest = (newest + 1) % window
    state.next = oldest
    _keep_position(state, step, newest)
    _keep_goal(state, step, newest)
    _keep_gripper(state, step, newest, limits.gripper_column)
    out.still = out.path_m = out.net_m = path = nan
    if state.position_run >= window:
        path = out.path_m = path_of(state.lengths, oldest)
        first, last = state.positions[oldest], state.positions[newest]
        out.net_m = length(last[0] - first[0], last[1] - first[1], last[2] - first[2])
    elif state.position_run == 0 and state.goal_run >= window:
        # Without a position, a goal distance that does not change says the same.
        path = path_of(state.goal_lengths, oldest)
    if not isnan(path):
        most = max(spread_of(state.openings), spread_of(state.commands))
        floor = limits.path_m
        out.still = 0.0 if most > limits.gripper_change else floor / (floor + path)


@compiled
def _keep_position(state: State, step: StepRow, newest: int) -> None:
    now, before = state.positions[newest], state.positions[newest - 1]
    x, y, z = step.position[0], step.position[1], step.position[2]
    state.lengths[newest] = length(x - before[0], y - before[1], z - before[2])
    now[0], now[1], now[2] = x, y, z
    state.position_run = 0 if isnan(x) else state.position_run + 1


@compiled
def _keep_goal(state: State, step: StepRow, newest: int) -> None:
    distance = step.goal_distance
    if not isnan(distance) and not isnan(state.last_goal):
        state.goal_lengths[newest] = abs(distance - state.last_goal)
    state.goal_run = 0 if isnan(distance) else state.goal_run + 1
    state.last_goal = distance


@compiled
def _keep_gripper(state: State, step: StepRow, newest: int, column: int) -> None:
    """Keep the opening; what is commanded stands in for it, on its own scale."""
    state.openings[newest] = step.gripper
    state.commands[newest] = nan
    if isnan(step.gripper) and column >= 0:
        state.commands[newest] = step.action[column]


def configure(setup: Setup) -> Limits:
    """Return the configured floors and the column of the gripper's command."""
    metrics = setup.config.metrics
    return Limits(
        path_m=metrics.still_path_m,
        gripper_change=metrics.gripper_change,
        gripper_column=setup.gripper.column(setup.dim),
    )


METRIC = MetricStage(
    name="stillness",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
)
