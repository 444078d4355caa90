"""What the episode score is measured against, and what an episode costs.

Each baseline is one number per episode, larger = less certain, out of the trace alone. Darabi et
al., "GroundControl", arXiv 2606.20479, name them; what they leave open is said at each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import dist, log
from typing import Any, Final

import numpy as np

from monitor.study.report.rollout_values import mean
from monitor.study.runs import Episode, Run
from monitor.study.statistics.detection import prefix_peak
from monitor.study.statistics.selective_risk import selective_risk

__all__ = ["RiskRow", "adaptive_conformal", "path_loss", "risk_rows"]

ALPHA: Final = 0.1
"""Miscoverage that the adaptive interval aims at."""
GAMMA: Final = 0.05
"""Step of its adaptation (Gibbs & Candes 2021 take 0.005 for series of thousands)."""
SHARES: Final = (0.6, 0.4)
"""Shares of the running miscoverage and of the mean normalised residual."""
BINS: Final = 16
ROUNDING: Final = 1e-9
"""A residual this close to the interval's end is within it."""
INVALID: Final = frozenset(
    {"NONFINITE_ACTION", "ACTION_SHAPE", "ACTION_MISSING", "ACTION_RANGE", "MALFORMED_TOKENS"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskRow:
    """How well one number per episode sorts out the bad ones.

    Attributes:
        name: name of the number.
        episodes: number of episodes in which it is known.
        failure: excess area under the risk curve (E-AURC) with loss 1 - success; 0 is perfect.
        path: the same with loss 1 - SPL; None where path lengths are unknown.
    """

    name: str
    episodes: int
    failure: float
    path: float | None


def adaptive_conformal(distances: Sequence[float | None]) -> float | None:
    """Adaptive conformal baseline: how badly the goal distance follows its own line.

    The next distance is foretold as 2 d[t-1] - d[t-2]; the interval is the quantile of the
    episode's residuals so far at an adapted level. Residuals are relative to the first distance.

    Args:
        distances: metres by step; None ends the run of three that a forecast needs.

    Returns:
        In [0, 1]; None without a single forecast that can be judged.

    >>> adaptive_conformal([0.4, 0.3, 0.2, 0.1])
    0.0
    """
    first = next((d for d in distances if d is not None), None)
    residuals: list[float] = []
    missed: list[bool] = []
    alpha = ALPHA
    for a, b, c in zip(distances, distances[1:], distances[2:], strict=False):
        if a is None or b is None or c is None:
            continue
        residual = abs(c - (2.0 * b - a))
        if residuals:
            reach = float(np.quantile(residuals, min(max(1.0 - alpha, 0.0), 1.0)))
            missed.append(residual > reach + ROUNDING)
            alpha += GAMMA * (ALPHA - missed[-1])
        residuals.append(residual)
    if not missed or not first:
        return None
    normalised = min(float(np.mean(residuals)) / first, 1.0)
    score = SHARES[0] * float(np.mean(missed)) + SHARES[1] * normalised
    return 0.0 if score < ROUNDING else score


def action_entropy(episode: Episode, low: Sequence[float], high: Sequence[float]) -> float | None:
    """Entropy of the action histogram, mean over dimensions, in [0, 1]; None without actions."""
    rows = [step["evidence"].get("action") for step in episode.steps]
    actions = np.array([row for row in rows if row is not None], dtype=np.float64)
    if actions.ndim != 2:
        return None
    span = np.where(np.subtract(high, low) > 0, np.subtract(high, low), 1.0)
    index = np.clip((actions - low) / span * BINS, 0, BINS - 1).astype(np.int64)
    return float(np.mean([_entropy(column) for column in index.T]))


def _entropy(symbols: np.ndarray[Any, Any]) -> float:
    share = np.bincount(symbols) / symbols.size
    share = share[share > 0]
    return float(-(share * np.log(share)).sum() / log(BINS))


def path_loss(episode: Episode) -> float | None:
    """1 - SPL: success times the first goal distance over the longer of it and the tool's path."""
    places = [step.get("tcp_position") for step in episode.steps]
    known = [place for place in places if place is not None]
    start = next(
        (d for step in episode.steps if (d := step.get("goal_distance")) is not None), None
    )
    if episode.outcome == "failure":
        return 1.0
    if start is None or len(known) < 2:
        return None
    length = sum(dist(a, b) for a, b in pairwise(known))
    return 1.0 - start / max(start, length) if start > 0.0 else 0.0


def risk_rows(run: Run, *, seed: int = 0) -> list[RiskRow]:
    """Excess risk of the episode score, the online score and the baselines, over one run.

    Args:
        run: its episodes with a verdict are taken.
        seed: seed of the random baseline.
    """
    episodes = run.of("success", "failure")
    rng = np.random.default_rng(seed)
    ends = run.header.get("env") or {}
    low, high = ends.get("action_low"), ends.get("action_high")
    numbers: Mapping[str, list[float | None]] = {
        "U, episode score": [_last(one.series("U")) for one in episodes],
        "peak of the online score": [one.peak for one in episodes],
        "entropy of tokens, mean": [mean(one.series("TB-E")) for one in episodes],
        "adaptive conformal": [
            adaptive_conformal([step.get("goal_distance") for step in one.steps])
            for one in episodes
        ],
        "entropy of actions": [
            None if low is None or high is None else action_entropy(one, low, high)
            for one in episodes
        ],
        "inconsistency of plans": [prefix_peak(one.series("CHUNK")) for one in episodes],
        "invalid actions": [_invalid(one) for one in episodes],
        "random": rng.uniform(size=len(episodes)).tolist(),
    }
    failure = [float(one.outcome == "failure") for one in episodes]
    path = [path_loss(one) for one in episodes]
    rows = []
    for name, values in numbers.items():
        count = sum(value is not None for value in values)
        excess = _excess(values, failure)
        if excess is not None:
            rows.append(
                RiskRow(name=name, episodes=count, failure=excess, path=_excess(values, path))
            )
    return rows


def _excess(values: Sequence[float | None], losses: Sequence[float | None]) -> float | None:
    pairs = [
        (value, loss)
        for value, loss in zip(values, losses, strict=True)
        if value is not None and loss is not None
    ]
    curve = selective_risk([value for value, _ in pairs], [loss for _, loss in pairs])
    return None if curve is None else curve.e_aurc


def _invalid(episode: Episode) -> float | None:
    if not episode.steps:
        return None
    return sum(bool(INVALID.intersection(s["faults"])) for s in episode.steps) / len(episode.steps)


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)
