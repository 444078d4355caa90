from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")

from monitor.errors import CalibrationError
from monitor.study.quality.grade_fit import GradeConfig, agree, fit_grade
from monitor.study.quality.indicators import Measured, measure_run
from monitor.study.quality.ratings import Ratings, read_ratings
from monitor.study.runs import Run


@pytest.fixture(scope="module")
def known(rated: Path) -> tuple[Run, list[Measured], Ratings]:
    run = Run.load(rated)
    return run, measure_run(run), read_ratings([rated / "scores.csv"], run)


Known = tuple[Run, list[Measured], Ratings]


def test_a_fit_finds_again_what_the_scores_were_made_of(known: Known) -> None:
    fitted = fit_grade(*known)
    assert len(fitted.train) == len(fitted.test) == 20
    assert not set(fitted.train) & set(fitted.test)
    found = agree(fitted.grade, known[1], known[2], fitted.test)
    assert found.srcc.value is not None
    assert found.srcc.value > 0.8
    assert found.srcc.episodes == 20
    assert found.r_l2.value is not None
    assert found.r_l2.value < 0.15
    assert set(found.by_rater) == set(found.left_out) == {"ada", "bo", "cy"}
    assert sum(fitted.grade.weights.values()) == pytest.approx(1.0)


def test_only_the_training_split_shapes_the_grade(known: Known) -> None:
    run, measured, ratings = known
    fitted = fit_grade(*known)
    changed = [
        one
        if one.episode in fitted.train
        else replace(one, collisions=7, of={**one.of, "velocity": 9.9})
        for one in measured
    ]
    turned = Ratings(
        by={
            rater: {e: s if e in fitted.train else 11 - s for e, s in scores.items()}
            for rater, scores in ratings.by.items()
        }
    )
    assert fit_grade(run, changed, turned) == fitted


def test_the_grades_of_the_training_split_have_the_experts_mean_and_spread(known: Known) -> None:
    _, measured, ratings = known
    fitted = fit_grade(*known)
    grades = [fitted.grade.score(one) for one in measured if one.episode in fitted.train]
    experts = [ratings.mean(episode) for episode in fitted.train]
    given, wanted = np.array(grades, dtype=float), np.array(experts, dtype=float)
    assert given.mean() == pytest.approx(wanted.mean())
    assert given.std() == pytest.approx(wanted.std(), rel=1e-6)


def test_seed_and_share_are_what_they_say(known: Known) -> None:
    assert fit_grade(*known, GradeConfig(seed=0)) == fit_grade(*known)
    assert fit_grade(*known, GradeConfig(seed=1)).train != fit_grade(*known).train
    assert len(fit_grade(*known, GradeConfig(train_share=0.8)).train) == 32


def test_what_most_episodes_lack_is_left_out_and_what_few_lack_costs_them(known: Known) -> None:
    run, measured, ratings = known
    blind = [replace(one, collisions=None, of={**one.of, "start_time": None}) for one in measured]
    fitted = fit_grade(run, blind, ratings)
    assert fitted.grade.collision_penalty is None
    assert list(fitted.grade.weights) == ["velocity", "acceleration", "task_time"]
    few = [replace(one, of={**one.of, "velocity": None}) for one in measured[:3]]
    fewer = fit_grade(run, [*few, *measured[3:]], ratings)
    assert len(fewer.train) + len(fewer.test) == 37
    assert not {0, 1, 2} & {*fewer.train, *fewer.test}
    broken = [replace(one, outcome="error") for one in measured[:3]]
    assert fit_grade(run, [*broken, *measured[3:]], ratings).train == fewer.train


@pytest.mark.parametrize(("share", "needed"), [(0.5, 16), (0.8, 21), (0.3, 27)])
def test_too_few_episodes_says_how_many_are_needed(share: float, needed: int, known: Known) -> None:
    run, measured, ratings = known
    config = GradeConfig(train_share=share)
    with pytest.raises(CalibrationError, match=rf"needs {needed} rated .* found {needed - 1} of"):
        fit_grade(run, measured, ratings.only(range(needed - 1)), config)
    fitted = fit_grade(run, measured, ratings.only(range(needed)), config)
    assert len(fitted.train) >= 8
    assert len(fitted.test) >= 5


def test_one_rater_and_experts_who_see_no_difference_are_not_enough(known: Known) -> None:
    run, measured, ratings = known
    with pytest.raises(CalibrationError, match="only ada rated; at least 2 raters"):
        fit_grade(run, measured, Ratings(by={"ada": ratings.by["ada"]}))
    level = {rater: dict.fromkeys(scores, 5) for rater, scores in ratings.by.items()}
    with pytest.raises(CalibrationError, match="same mean score"):
        fit_grade(run, measured, Ratings(by=level))


def test_a_run_whose_contacts_are_not_known_is_fitted_without(
    write_rated_run: Callable[..., Path], tmp_path: Path
) -> None:
    folder = write_rated_run(tmp_path / "run", contacts=False)
    run = Run.load(folder)
    fitted = fit_grade(run, measure_run(run), read_ratings([folder / "scores.csv"], run))
    assert fitted.grade.collision_penalty is None
    assert fitted.grade.score(measure_run(run)[0]) is not None
