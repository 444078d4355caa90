"""NO-PROG and OT: whether the goal distance shrinks, over the window and in one step.

NO-PROG is this project's; OT is the optimal-trajectory metric of Valle et al., arXiv 2507.17049.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan

from monitor.metrics.ring import path_of
from monitor.stage import MetricInfo, MetricStage, Setup, StepRow, Vector, array, compiled
from monitor.stage.info import OWN

GOAL = ("goal_distance",)
INFO = (
    MetricInfo(
        id="NO-PROG",
        meaning="(1 - gain / path) / 2 of the goal distance over the window",
        warmup=8,
        needs=GOAL,
        privileged=True,
        source=OWN,
        typical=(0.15, 0.50, 0.80),
        of_motion=True,
        right_after_success=True,
        column="no_progress",
    ),
    MetricInfo(
        id="OT",
        meaning="change of the normalised goal distance; 0.5 = no progress",
        needs=GOAL,
        privileged=True,
        column="trajectory",
    ),
)


@dataclass(slots=True)
class State:
    """Rings of distances and their changes; the episode's first distance and the last."""

    next: int = 0
    run: int = 0
    first: float = nan
    last: float = nan
    distances: Vector = array("window", start=0.0)
    changes: Vector = array("window", start=0.0)


@dataclass(slots=True)
class Limits:
    """Path that counts as none; the scale of OT, NaN for the episode's first distance."""

    path_m: float = 0.002
    scale_m: float = nan


@dataclass
class Out:
    """Both metrics, NaN while unknown."""

    no_progress: float = nan
    trajectory: float = nan


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> from monitor.stage import fresh
    >>> state, out = fresh(State, window=4), Out()
    >>> for d in (0.4, 0.3, 0.4, 0.3):
    ...     row = StepRow([0.0], [nan] * 3, [nan] * 4, goal_distance=d)
    ...     update(state, row, out, Limits())
    >>> round(out.no_progress, 3), round(out.trajectory, 3)
    (0.333, 0.375)
    """
    out.no_progress = out.trajectory = nan
    d, now, window = step.goal_distance, state.next, len(state.distances)
    state.next = (now + 1) % window
    if isnan(d):
        state.run, state.last = 0, nan
        return
    if isnan(state.first):
        state.first = d
        out.trajectory = 0.5
    if not isnan(state.last):
        state.changes[now] = abs(d - state.last)
        scale = state.first if isnan(limits.scale_m) else limits.scale_m
        if scale > 0.0:
            out.trajectory = (_clipped((d - state.last) / scale, -1.0) + 1.0) / 2.0
    state.last = state.distances[now] = d
    state.run += 1
    if state.run >= window:
        path = path_of(state.changes, state.next)
        out.no_progress = 0.5
        if path > limits.path_m:
            gain = state.distances[state.next] - d
            out.no_progress = _clipped((1.0 - gain / path) / 2.0, 0.0)


@compiled
def _clipped(x: float, low: float) -> float:
    x = low if x < low else x
    return 1.0 if x > 1.0 else x


def configure(setup: Setup) -> Limits:
    """Return the configured floor and scale."""
    metrics = setup.config.metrics
    scale = nan if metrics.goal_scale_m is None else metrics.goal_scale_m
    return Limits(path_m=metrics.still_path_m, scale_m=scale)


METRIC = MetricStage(
    name="progress",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
)
