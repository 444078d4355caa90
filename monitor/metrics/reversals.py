"""REV: share of the window's actions that turn back on the action before."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan, sqrt

from monitor.stage import MetricInfo, MetricStage, Setup, StepRow, Vector, array, compiled
from monitor.stage.info import OWN

INFO = MetricInfo(
    id="REV",
    meaning="share of the window's actions that turn back",
    warmup=8,
    needs=("action",),
    source=OWN,
    typical=(0.10, 0.25, 0.40),
    of_motion=True,
    column="reversals",
)


@dataclass(slots=True)
class State:
    """The last translation, a ring of which actions turned back, and how many are known."""

    next: int = 0
    run: int = 0
    last: Vector = array(3)
    turned: Vector = array("window", start=0.0)


@dataclass(slots=True)
class Limits:
    """Translations below ``floor_m`` have no direction; D; the cosine of a reversal."""

    floor_m: float = 0.002
    cosine: float = -0.5
    dim: int = 7


@dataclass
class Out:
    """The share, and whether this action turns back on the last (1 or 0)."""

    reversals: float = nan
    reversal: float = nan


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> from monitor.stage import fresh
    >>> state, out, limits = fresh(State, window=4), Out(), Limits()
    >>> for x in (0.1, -0.1, 0.1, 0.1):
    ...     update(state, StepRow([x, 0.0, 0.0, 0.0], [nan] * 3, [nan] * 4), out, limits)
    >>> round(out.reversals, 3), out.reversal
    (0.667, 0.0)
    """
    now, window = state.next, len(state.turned)
    state.next = (now + 1) % window
    out.reversal = out.reversals = nan
    if limits.dim < 3:
        return
    if isnan(step.action[0]):
        state.run = 0
    elif not isnan(state.last[0]):
        out.reversal = state.turned[now] = _turns_back(state, step, limits)
        state.run += 1
    for j in range(3):
        state.last[j] = step.action[j]
    if state.run >= window - 1:
        count = 0.0
        for j in range(window - 1):
            count += state.turned[(now + window - j) % window]
        out.reversals = count / (window - 1)


@compiled
def _turns_back(state: State, step: StepRow, limits: Limits) -> float:
    na = nb = dot = 0.0
    for j in range(3):
        na += state.last[j] * state.last[j]
        nb += step.action[j] * step.action[j]
        dot += state.last[j] * step.action[j]
    floor = limits.floor_m * limits.floor_m
    if na < floor or nb < floor:
        return 0.0
    return 1.0 if dot < limits.cosine * sqrt(na) * sqrt(nb) else 0.0


def configure(setup: Setup) -> Limits:
    """Return the configured limits."""
    metrics = setup.config.metrics
    return Limits(floor_m=metrics.reversal_floor_m, cosine=metrics.reversal_cosine, dim=setup.dim)


METRIC = MetricStage(
    name="reversals",
    info=(INFO,),
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
)
