"""U: the episode score of GroundControl, Darabi et al., arXiv 2606.20479, and what it is made of.

H weighs the covariance of the distance filter, the entropy of the action's probability and NIS;
skf is the sigmoid of the largest H so far. U is the weighted mean of skf, prog, mono, eff and
osc over those that are known. prog and mono start at their worst value in a healthy episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, isnan, log, nan

from monitor.belief import kalman
from monitor.metrics import reversals
from monitor.stage import MetricInfo, MetricStage, Setup, StepRow, Vector, array, compiled
from monitor.stage.info import DARABI

GOAL, ACTION = ("goal_distance",), ("action",)


def _info(name: str, meaning: str, needs: tuple[str, ...], column: str) -> MetricInfo:
    return MetricInfo(
        id=name, meaning=meaning, needs=needs, privileged=True, source=DARABI, column=column
    )


INFO = (
    MetricInfo(
        id="H",
        meaning="covariance, action entropy and NIS of the step, weighted",
        low=None,
        high=None,
        needs=GOAL,
        privileged=True,
        source=DARABI,
        column="entropy",
    ),
    _info("skf", "sigmoid of the largest H so far", GOAL, "filter_uncertainty"),
    _info("prog", "1 - share of the first distance gained so far", GOAL, "missing_gain"),
    _info("mono", "share of steps that did not come nearer", GOAL, "not_nearer"),
    _info("eff", "1 - net gain over path of the goal distance", GOAL, "inefficiency"),
    _info("osc", "share of actions so far that turn back", ACTION, "oscillation"),
    _info("U", "episode score, the five weighted; starts at its worst", GOAL, "episode_score"),
)


@dataclass(slots=True)
class State:
    """Sums over the episode so far."""

    first: float = nan
    last: float = nan
    path: float = 0.0
    changes: float = 0.0
    falls: float = 0.0
    pairs: float = 0.0
    reversals: float = 0.0
    top: float = nan


@dataclass(slots=True)
class Limits:
    """Weights of H (covariance, action entropy, NIS) and of U (skf, prog, mono, eff, osc)."""

    epsilon: float = 1e-6
    entropy_weights: Vector = array(3, start=1.0)
    u_weights: Vector = array(5, start=0.2)


@dataclass
class Out(kalman.Out, reversals.Out):
    """H, the five features and U, NaN while unknown."""

    entropy: float = nan
    filter_uncertainty: float = nan
    missing_gain: float = nan
    not_nearer: float = nan
    inefficiency: float = nan
    oscillation: float = nan
    episode_score: float = nan


@compiled
def update(state: State, step: StepRow, out: Out, limits: Limits) -> None:
    """Take one step.

    >>> limits = Limits(entropy_weights=[1.0, 0.5, 0.8], u_weights=[0.3, 0.25, 0.2, 0.15, 0.1])
    >>> state, out = State(), Out()
    >>> for d in (0.4, 0.3, 0.35, 0.2):
    ...     update(state, StepRow([0.0], [nan] * 3, [nan] * 4, goal_distance=d), out, limits)
    >>> [round(x, 3) for x in (out.missing_gain, out.not_nearer, out.inefficiency)]
    [0.5, 0.333, 0.333]
    """
    out.entropy = _weighted_entropy(step.alpha, out, limits)
    if isnan(state.top) or out.entropy > state.top:
        state.top = out.entropy
    _note_distance(state, step.goal_distance)
    if not isnan(out.reversal):
        state.pairs += 1.0
        state.reversals += out.reversal
    out.filter_uncertainty = _sigmoid(state.top)
    out.missing_gain = out.not_nearer = out.inefficiency = out.oscillation = nan
    if not isnan(state.first):
        gained = state.first - state.last
        share = gained / state.first if state.first > 0.0 else 1.0
        out.missing_gain = 1.0 - _unit(share)
        if state.changes > 0.0:
            out.not_nearer = 1.0 - state.falls / state.changes
        out.inefficiency = _unit(1.0 - abs(gained) / state.path if state.path > 0.0 else 1.0)
    if state.pairs > 0.0:
        out.oscillation = state.reversals / state.pairs
    out.episode_score = _episode_score(out, limits)


@compiled
def _weighted_entropy(alpha: float, out: Out, limits: Limits) -> float:
    """Return H, NaN without a belief."""
    a, c = out.var_distance + limits.epsilon, out.var_velocity + limits.epsilon
    determinant = a * c - out.cov * out.cov
    if not determinant > 0.0:
        return nan
    h = limits.entropy_weights[0] * log(determinant)
    if not isnan(alpha):
        coin = 0.0
        if 0.0 < alpha < 1.0:
            coin = -alpha * log(alpha) - (1.0 - alpha) * log(1.0 - alpha)
        h += limits.entropy_weights[1] * coin
    if not isnan(out.nis):
        h += limits.entropy_weights[2] * out.nis
    return h


@compiled
def _note_distance(state: State, d: float) -> None:
    if isnan(d):
        return
    if isnan(state.first):
        state.first = d
    else:
        state.changes += 1.0
        state.falls += 1.0 if d < state.last else 0.0
        state.path += abs(d - state.last)
    state.last = d


@compiled
def _sigmoid(x: float) -> float:
    if x >= 0.0:
        return 1.0 / (1.0 + exp(-x))
    return exp(x) / (1.0 + exp(x))


@compiled
def _unit(x: float) -> float:
    x = 0.0 if x < 0.0 else x
    return 1.0 if x > 1.0 else x


@compiled
def _episode_score(out: Out, limits: Limits) -> float:
    total = weight = 0.0
    features = (
        out.filter_uncertainty,
        out.missing_gain,
        out.not_nearer,
        out.inefficiency,
        out.oscillation,
    )
    for j in range(5):
        if not isnan(features[j]):
            total += limits.u_weights[j] * features[j]
            weight += limits.u_weights[j]
    return total / weight if weight > 0.0 else nan


def configure(setup: Setup) -> Limits:
    """Return the configured weights."""
    belief = setup.config.belief
    return Limits(belief.epsilon, list(belief.entropy_weights), list(belief.u_weights))


METRIC = MetricStage(
    name="groundcontrol",
    info=INFO,
    state=State,
    limits=Limits,
    out=Out,
    update=update,
    configure=configure,
)
