from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Any

import pytest

from monitor.errors import CalibrationError
from monitor.study.quality.grade import EPSILON, Grade, steadiness
from monitor.study.quality.indicators import Measured
from monitor.study.runs import Run

GRADE = Grade(
    env="toy",
    robot="toy",
    control_dt_s=0.2,
    weights={"velocity": 0.5, "task_time": 0.3, "start_time": 0.2},
    quantiles={"velocity": tuple(float(i) for i in range(21))},
    horizon_steps=40,
    collision_penalty=2.0,
    failure_penalty=4.0,
    expert_mean=5.0,
    expert_std=2.0,
    raw_mean=0.5,
    raw_std=0.25,
    n_train=20,
    raters=("ada", "bo"),
    seed=0,
)


def measured(outcome: str = "success", collisions: int | None = 0, **of: Any) -> Measured:
    given = {"velocity": 5.0, "acceleration": None, "task_time": 10.0, "start_time": 4.0, **of}
    return Measured(episode=0, scene=0, outcome=outcome, steps=40, collisions=collisions, of=given)


def test_the_grade_is_its_formula_by_hand() -> None:
    assert GRADE.indicators(measured()) == {"velocity": 0.75, "task_time": 0.75, "start_time": 0.9}
    raw = 0.5 * 0.75 + 0.3 * 0.75 + 0.2 * 0.9
    assert GRADE.raw(measured()) == pytest.approx(raw)
    assert GRADE.score(measured()) == pytest.approx(5 + 2 * (raw - 0.5) / (0.25 + EPSILON))


@pytest.mark.parametrize(
    ("outcome", "collisions", "eta"),
    [("success", 0, 1), ("success", 3, 2), ("failure", 0, 4), ("halted", 0, 4), ("failure", 1, 8)],
)
def test_a_collision_and_a_failure_divide_the_indicators(
    outcome: str, collisions: int, eta: float
) -> None:
    one = measured(outcome, collisions)
    plain = GRADE.penalised(measured())
    assert plain is not None
    assert GRADE.penalty(one) == eta
    assert GRADE.penalised(one) == pytest.approx([value / eta for value in plain])


def test_times_beyond_the_horizon_are_the_worst_and_no_less() -> None:
    late = GRADE.indicators(measured("failure", task_time=inf, start_time=50.0))
    assert (late["task_time"], late["start_time"]) == (0.0, 0.0)


def test_what_is_unknown_has_no_grade() -> None:
    for one in (
        measured(velocity=None),
        measured(start_time=None),
        measured(collisions=None),
        measured("error"),
    ):
        assert GRADE.score(one) is None
    assert GRADE.score(measured(acceleration=None)) is not None  # no part of this grade
    blind = GRADE.model_copy(update={"collision_penalty": None})
    assert blind.score(measured(collisions=None)) == blind.score(measured(collisions=5))


def test_steadiness_is_the_share_that_is_worse() -> None:
    table = [float(i) for i in range(21)]
    assert [steadiness(v, table) for v in (-1.0, 0.0, 10.0, 20.0, 21.0)] == [1, 1, 0.5, 0, 0]
    assert steadiness(2.5, table) == pytest.approx(1 - 2.5 / 20)
    tied = [1.0] * 11 + [2.0] * 10  # levels 0 to 0.5 share a value
    assert steadiness(1.0, tied) == pytest.approx(0.75)
    same = [3.0] * 21
    assert [steadiness(v, same) for v in (2.0, 3.0, 4.0)] == [1.0, pytest.approx(0.5), 0.0]


def test_a_saved_grade_is_the_same(tmp_path: Path) -> None:
    GRADE.save(tmp_path / "deep" / "grade.json")
    assert Grade.load(tmp_path / "deep" / "grade.json") == GRADE


@pytest.mark.parametrize(
    "change",
    [
        {"weights": {"speed": 1.0}},
        {"weights": {"acceleration": 1.0}},
        {"weights": {}},
        {"weights": {"task_time": 0.0}},
        {"weights": {"task_time": -1.0}},
        {"failure_penalty": 0.5},
        {"quantiles": {"velocity": [1.0]}},
        {"schema_version": 2},
        {"other": 1},
    ],
)
def test_a_file_that_is_no_grade_says_how_to_make_one(
    change: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "grade.json"
    path.write_text(json.dumps(GRADE.model_dump() | change), encoding="utf-8")
    with pytest.raises(CalibrationError, match="make one with `vlawatch grade RUN --experts`"):
        Grade.load(path)
    with pytest.raises(CalibrationError, match="cannot use grade"):
        Grade.load(tmp_path / "none.json")


def test_a_run_of_another_robot_or_rate_is_refused(rated: Path) -> None:
    run = Run.load(rated)
    GRADE.check(run)
    for change in ({"robot": "arm"}, {"control_dt_s": 0.1}, {"robot": None}):
        with pytest.raises(CalibrationError, match=r"is of robot toy at 0\.2 s a step"):
            GRADE.model_copy(update=change).check(run)
