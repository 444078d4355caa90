"""Fit a grade to experts' scores, and measure on other episodes how far it agrees with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import numpy as np

from monitor.errors import CalibrationError
from monitor.records import FloatArray
from monitor.study.quality.agreement import Estimate, leave_one_out, r_l2, srcc
from monitor.study.quality.grade import LEVELS, Grade, setup
from monitor.study.quality.indicators import INDICATORS, Measured
from monitor.study.quality.rank_weights import fit_weights
from monitor.study.quality.ratings import Ratings
from monitor.study.runs import Run

__all__ = ["Agreement", "Fitted", "GradeConfig", "agree", "fit_grade"]

FEWEST_TRAIN: Final = 8
FEWEST_TEST: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeConfig:
    """How to fit.

    Attributes:
        train_share: share of the rated episodes, between 0 and 1; the rest is for the test.
        seed: seed of the split and of the search.
        collision_penalty: lambda_coll, at least 1.
        failure_penalty: lambda_fail, at least 1.
    """

    train_share: float = 0.5
    seed: int = 0
    collision_penalty: float = 2.0
    failure_penalty: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A grade and the episodes that it saw, and did not see.

    Attributes:
        grade: grade fitted on the training split.
        train: numbers of its episodes.
        test: those of the others that can be graded.
    """

    grade: Grade
    train: tuple[int, ...]
    test: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement of a grade with experts, next to that of the experts with each other.

    Attributes:
        srcc: rank correlation of the grade with the experts' mean.
        r_l2: error of the grade against the experts' mean.
        by_rater: SRCC of the grade with each rater alone.
        left_out: SRCC of each rater with the mean of the others, what a grade may hope for.
    """

    srcc: Estimate
    r_l2: Estimate
    by_rater: Mapping[str, Estimate]
    left_out: Mapping[str, Estimate]


def fit_grade(
    run: Run, measured: Sequence[Measured], ratings: Ratings, config: GradeConfig | None = None
) -> Fitted:
    """Fit on a random share of the rated episodes.

    An indicator that no more than half of them have is left out, and so are collisions; an episode
    that lacks any of the others is not used.

    Raises:
        CalibrationError: fewer than two raters, too few episodes (says how many are needed), or
            experts who found every training episode equally good.
    """
    config = config or GradeConfig()
    _check_raters(ratings)
    names, see_collisions, usable = _usable(measured, ratings)
    size = int(config.train_share * len(usable))
    if not _enough(len(usable), config.train_share):
        raise CalibrationError(_too_few(len(usable), len(ratings.episodes), config.train_share))
    order = np.random.default_rng(config.seed).permutation(len(usable))
    train = [usable[i] for i in sorted(order[:size])]
    experts = np.array([ratings.mean(one.episode) for one in train], dtype=np.float64)
    _check_spread(experts)
    robot, dt_s = setup(run)
    draft = Grade(
        env=run.env,
        robot=robot,
        control_dt_s=dt_s,
        weights=dict.fromkeys(names, 1 / len(names)),
        quantiles={
            name: tuple(np.quantile([one.of[name] for one in train], LEVELS).tolist())
            for name in names
            if name in ("velocity", "acceleration")
        },
        horizon_steps=max(1, *(one.steps for one in train)),
        collision_penalty=config.collision_penalty if see_collisions else None,
        failure_penalty=config.failure_penalty,
        expert_mean=float(experts.mean()),
        expert_std=float(experts.std()),
        raw_mean=0.0,
        raw_std=0.0,
        n_train=size,
        raters=ratings.raters,
        seed=config.seed,
    )
    parts = np.array([draft.penalised(one) for one in train], dtype=np.float64)
    weights = fit_weights(parts, experts, seed=config.seed)
    raw = parts @ weights
    update: dict[str, Any] = {
        "weights": dict(zip(names, weights.tolist(), strict=True)),
        "raw_mean": float(raw.mean()),
        "raw_std": float(raw.std()),
    }
    chosen = {one.episode for one in train}
    return Fitted(
        grade=Grade.model_validate(draft.model_dump() | update),
        train=tuple(one.episode for one in train),
        test=tuple(one.episode for one in usable if one.episode not in chosen),
    )


def agree(
    grade: Grade, measured: Sequence[Measured], ratings: Ratings, episodes: Sequence[int]
) -> Agreement:
    """Measure agreement on those of ``episodes`` that are rated and can be graded."""
    scores = {one.episode: grade.score(one) for one in measured if one.episode in episodes}
    known = {episode: score for episode, score in scores.items() if score is not None}
    there = ratings.only([episode for episode in known if episode in ratings.episodes])
    means = [there.mean(episode) for episode in there.episodes]
    given = [known[episode] for episode in there.episodes]
    experts = np.array(means, dtype=np.float64)
    return Agreement(
        srcc=srcc(given, experts),
        r_l2=r_l2(given, experts),
        by_rater={
            rater: srcc([known[episode] for episode in of], list(of.values()))
            for rater, of in there.by.items()
        },
        left_out=leave_one_out(there),
    )


def _usable(
    measured: Sequence[Measured], ratings: Ratings
) -> tuple[list[str], bool, list[Measured]]:
    """Return the indicators to fit, whether collisions count, and the episodes that have both."""
    rated = [one for one in measured if one.episode in ratings.episodes and one.outcome != "error"]
    half = len(rated) / 2
    names = [name for name in INDICATORS if _number(one.of[name] for one in rated) > half]
    see_collisions = _number(one.collisions for one in rated) > half
    usable = [
        one
        for one in rated
        if all(one.of[name] is not None for name in names)
        and (not see_collisions or one.collisions is not None)
    ]
    return names, see_collisions, usable


def _check_raters(ratings: Ratings) -> None:
    if len(ratings.raters) < 2:
        msg = (
            f"only {', '.join(ratings.raters) or 'no expert'} rated; at least 2 raters are "
            "needed, as one alone does not show how far experts agree"
        )
        raise CalibrationError(msg)


def _check_spread(experts: FloatArray) -> None:
    if np.ptp(experts) == 0:
        msg = (
            f"the experts gave all {experts.size} training episodes the same mean score; there "
            "is no ranking to fit: rate episodes that differ, or take another --seed"
        )
        raise CalibrationError(msg)


def _number(values: Any) -> int:
    return sum(value is not None for value in values)


def _enough(usable: int, share: float) -> bool:
    train = int(share * usable)
    return train >= FEWEST_TRAIN and usable - train >= FEWEST_TEST


def _too_few(usable: int, rated: int, share: float) -> str:
    needed = next(n for n in count(FEWEST_TRAIN) if _enough(n, share))
    return (
        f"a grade at a training share of {share:g} needs {needed} rated episodes that can be "
        f"graded, {FEWEST_TRAIN} or more to fit on and {FEWEST_TEST} or more to test on; found "
        f"{usable} of {rated} rated ones (episodes that broke off by an error, or without joints "
        "or tool positions, do not count)"
    )
