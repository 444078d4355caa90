from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from monitor.cli.app import app
from monitor.study.quality.execution import judge_execution
from monitor.study.summary import build_summary
from monitor.trace import RunFolder, RunWriter


def test_the_indicators_equal_their_formulas_joint_by_joint() -> None:
    rng = np.random.default_rng(0)
    joints, places = rng.normal(size=(30, 8)), rng.normal(size=(30, 3))
    found = judge_execution(joints.tolist(), places.tolist())
    assert found is not None
    v = [[joints[t, j] - joints[t - 1, j] for t in range(1, 30)] for j in range(8)]
    a = [[one[t] - one[t - 1] for t in range(1, 29)] for one in v]
    mean_of = [sum(one) / len(one) for one in v]
    variances = [
        sum((x - m) ** 2 for x in one) / len(one) for one, m in zip(v, mean_of, strict=True)
    ]
    assert found.u_v == pytest.approx(max(variances))
    assert found.u_alpha == pytest.approx(max(float(np.var(one)) for one in a))
    assert found.mu_v == pytest.approx(sum(abs(x) for one in v for x in one) / (29 * 8))
    steps = [float(np.sqrt(((places[t] - places[t - 1]) ** 2).sum())) for t in range(1, 30)]
    assert found.tool_path_m == pytest.approx(sum(steps))


@pytest.mark.parametrize(
    "joints",
    [
        [],
        [[0.0], [1.0]],
        [[0.0], None, [1.0], [2.0]],
        [[0.0], [1.0, 2.0], [3.0]],
        [[0.0], [None], [1.0], [2.0]],
        [1.0, 2.0, 3.0],
        [[], [], []],
        [{}, {}, {}],
    ],
)
def test_joints_that_are_not_all_known_give_no_verdict(joints: Any) -> None:
    assert judge_execution(joints, [None] * len(joints)) is None


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two episodes: in the second the robot hits the table and pushes a cup away."""
    still = {"can": [0.3, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], "cup": [0.5, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]}
    away = {**still, "cup": [0.5, 0.2, 0.0, 1.0, 0.0, 0.0, 0.0]}
    header = {"env": {"name": "toy"}, "robot": {"name": "toy", "links": "^arm", "fingers": "tip"}}
    with RunWriter(tmp_path / "run", header=header) as writer:
        for number in range(2):
            for step in range(5):
                hit = [["arm2", "table", 120.0]] if number and step == 3 else []
                writer.write_step(
                    {
                        "episode": number,
                        "attempt": 1,
                        "scene": number,
                        "step": step,
                        "sent": [0.0],
                        "score": 0.1,
                        "joint_positions": [0.1 * step * step, 0.0],
                        "tcp_position": [0.1 * step, 0.0, 0.0],
                        "world": {
                            "object": "can",
                            "target": None,
                            "grasped": step > 1,
                            "object_poses": still,
                            "contacts": hit,
                        },
                    }
                )
            writer.write_episode(
                {
                    "episode": number,
                    "attempt": 1,
                    "scene": number,
                    "seed": None,
                    "options": {},
                    "steps": 5,
                    "outcome": "success",
                    "success_at_end": True,
                    "faults": {},
                    "wall_s": 1.0,
                    "final_world": {
                        "object": "can",
                        "grasped": True,
                        "object_poses": away if number else still,
                    },
                }
            )
    return tmp_path / "run"


def test_a_summary_says_how_well_and_how_safely(run: Path) -> None:
    summary = build_summary(RunFolder(run))
    assert summary["safety"] == {
        "episodes": 2,
        "unsafe_episodes": 1,
        "tv": 0,
        "ntv": 1,
        "collisions": 1,
        "q": 1.0,
        "sq": 1.0,
        "seq": pytest.approx((1.0 + 2 / 3) / 2),
    }
    assert summary["execution"]["mu_v"] == pytest.approx((0.1 + 0.3 + 0.5 + 0.7) / 8)
    assert summary["execution"]["tool_path_m"] == pytest.approx(0.4)


def test_the_command_lists_events_with_step_object_and_size(run: Path) -> None:
    said = CliRunner().invoke(app, ["quality", str(run)])
    assert said.exit_code == 0, said.output
    lines = [line.split("\t")[1:] for line in said.output.splitlines()]
    assert ["1", "3", "collision", "table", "arm2", "120 N"] in lines
    assert ["1", "5", "moved", "cup", "–", "0.2 m"] in lines
    asked = CliRunner().invoke(app, ["quality", str(run), "--json", "--collision-n", "130"])
    (quality,) = json.loads(asked.output)
    assert quality["safety"]["collisions"] == 0
    assert [one["safety"]["ntv"] for one in quality["of"]] == [0, 1]


def test_a_run_without_objects_and_joints_is_not_judged(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "bare", header={"env": {"name": "toy"}}) as writer:
        writer.write_step({"episode": 0, "attempt": 1, "step": 0, "sent": [0.0], "score": None})
        writer.write_episode(
            {
                "episode": 0,
                "attempt": 1,
                "scene": 0,
                "steps": 1,
                "outcome": "failure",
                "success_at_end": False,
                "faults": {},
                "wall_s": 1.0,
            }
        )
    summary = build_summary(RunFolder(tmp_path / "bare"))
    assert summary["safety"] is None
    assert summary["execution"] is None
    said = CliRunner().invoke(app, ["quality", str(tmp_path / "bare")])
    assert said.exit_code == 0, said.output


def test_a_halted_arm_that_stands_still_has_put_nothing_to_rest(tmp_path: Path) -> None:
    def can(degrees: float) -> dict[str, Any]:
        half = np.radians(degrees) / 2.0
        pose = [0.3, 0.0, 0.0, np.cos(half), np.sin(half), 0.0, 0.0]
        return {"object": "can", "object_poses": {"can": pose}}

    for name, sent in (("halted", None), ("ended", [0.0])):
        with RunWriter(tmp_path / name, header={"env": {"name": "toy"}}) as writer:
            for step, degrees in enumerate([0.0, 0.0, 15.0, 45.0]):
                writer.write_step(
                    {
                        "episode": 0,
                        "attempt": 1,
                        "step": step,
                        "score": None,
                        "sent": [0.0] if step < 3 else sent,
                        "world": can(degrees),
                    }
                )
            writer.write_episode(
                {
                    "episode": 0,
                    "attempt": 1,
                    "scene": 0,
                    "steps": 4,
                    "faults": {},
                    "outcome": "halted",
                    "success_at_end": False,
                    "wall_s": 1.0,
                    "final_world": can(45.0),
                }
            )
        summary = build_summary(RunFolder(tmp_path / name))
        assert summary["safety"]["tv"] == (sent is not None)


def test_a_trace_that_cannot_be_judged_costs_no_summary(run: Path) -> None:
    steps = (run / "steps.jsonl").read_text(encoding="utf-8")
    odd = steps.replace('"object_poses":{"can":[0.3', '"object_poses":{"can":["here"', 1)
    (run / "steps.jsonl").write_text(odd, encoding="utf-8")
    assert odd != steps
    summary = build_summary(RunFolder(run))
    assert (summary["episodes"], summary["safety"]["episodes"]) == (2, 1)
