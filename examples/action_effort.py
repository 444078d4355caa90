"""A metric: mean length of the commanded translations over the window, in metres.

    vlawatch run --env widowx-put-on --policy openvla-mini --monitor my.yaml

with ``metrics: {plugins: ["action_effort:METRIC"]}`` in my.yaml.
"""

from dataclasses import dataclass
from math import isnan, nan, sqrt

from monitor.stage import MetricInfo, MetricStage, StepRow, Vector, array, compiled

INFO = MetricInfo(
    id="EFFORT",
    meaning="mean length of the commanded translations over the window",
    unit="m",
    high=None,
    warmup=8,
    needs=("action",),
    source="example",
    column="effort_m",
)


@dataclass
class State:
    """A ring of lengths, and how many steps in a row had an action."""

    run: int = 0
    next: int = 0
    lengths: Vector = array("window", start=0.0)


@dataclass
class Limits:
    """Nothing is configured."""

    unused: bool = False


@dataclass
class Out:
    """The metric, NaN while the window is not full."""

    effort_m: float = nan


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step."""
    x, y, z = step.action[0], step.action[1], step.action[2]
    state.lengths[state.next] = sqrt(x * x + y * y + z * z)
    state.next = (state.next + 1) % len(state.lengths)
    state.run = 0 if isnan(x) else state.run + 1
    out.effort_m = nan
    if state.run >= len(state.lengths):
        total = 0.0
        for k in range(len(state.lengths)):
            total += state.lengths[k]
        out.effort_m = total / len(state.lengths)


METRIC = MetricStage(
    name="effort", info=(INFO,), state=State, limits=Limits, out=Out, update=update
)
