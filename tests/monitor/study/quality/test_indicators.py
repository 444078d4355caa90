from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Any

import pytest

from monitor.study.quality.indicators import measure_run, start_steps, task_steps
from monitor.study.quality.judge import judge_run
from monitor.study.runs import Episode, Run


def test_a_run_is_measured_episode_by_episode(rated: Path) -> None:
    run = Run.load(rated)
    found, judged = measure_run(run), judge_run(run)
    assert len(found) == 40
    for one, quality, episode in zip(found, judged, run.episodes, strict=True):
        assert quality.execution is not None
        assert quality.safety is not None
        assert one.of["velocity"] == quality.execution.u_v
        assert one.of["acceleration"] == quality.execution.u_alpha
        assert one.collisions == quality.safety.collisions
        assert one.failed == (episode.outcome == "failure")
        solved = episode.record["first_success"]
        assert one.of["task_time"] == (inf if solved is None else solved + 1)
        away = [step["step"] for step in episode.steps if step["tcp_position"][0] > 0.05]
        assert one.of["start_time"] == away[0]
    assert {one.failed for one in found} == {True, False}
    assert {one.collisions for one in found} == {0, 1}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"outcome": "success", "first_success": 4}, 5),
        ({"outcome": "success", "first_success": 0}, 1),
        ({"outcome": "success", "success_at_reset": True}, 0),
        ({"outcome": "success"}, 30),  # a trace that does not say when
        ({"outcome": "failure", "first_success": 4}, inf),  # solved, and undone
        ({"outcome": "halted"}, inf),
    ],
)
def test_the_task_takes_until_it_is_solved(record: dict[str, Any], expected: float) -> None:
    assert task_steps(Episode(record={"steps": 30, **record}, steps=())) == expected


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([[0, 0, 0], [0, 0.06, 0]], 1),
        ([[1, 0, 0]] * 4, 4),
        ([[0, 0, 0], [0.06, 0, 0], [0, 0, 0]], 1),  # it comes back
        ([[0, 0, 0], None, [1, 0, 0]], None),
        ([[0, 0, 0], [0, 0]], None),
        ([], None),
    ],
)
def test_the_start_lasts_until_the_tool_is_away(places: Any, expected: float | None) -> None:
    assert start_steps(places) == expected


def test_a_trace_without_joints_contacts_and_tool_is_unknown(rated: Path, tmp_path: Path) -> None:
    kept = ("episode", "attempt", "step", "sent", "score")
    steps = [
        json.loads(line)
        for line in (rated / "steps.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    bare = "".join(json.dumps({name: step[name] for name in kept}) + "\n" for step in steps)
    (tmp_path / "steps.jsonl").write_text(bare, encoding="utf-8")
    (tmp_path / "episodes.jsonl").write_bytes((rated / "episodes.jsonl").read_bytes())
    found = measure_run(Run.load(tmp_path))
    for one in found:
        assert one.collisions is None
        assert [one.of[name] for name in ("velocity", "acceleration", "start_time")] == [None] * 3
