from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor.study.runs import Run
from monitor.study.statistics.detection import auroc, prefix_peak
from monitor.study.summary import build_summary
from monitor.trace import RunFolder

CONTRACT = {
    "episodes",
    "completed",
    "success_at_end",
    "success_once",
    "errors",
    "halted",
    "pass_rate",
    "alerts",
    "false_alarms",
    "missed_failures",
    "detection",
    "overhead_us",
    "policy_ms",
    "steps_per_s",
}


def write(path: Path, outcomes: list[str], **changes: Any) -> RunFolder:
    """A run folder by hand: three steps an episode."""
    path.mkdir()
    (path / "run.json").write_text("{}")
    with (path / "steps.jsonl").open("w") as steps, (path / "episodes.jsonl").open("w") as lines:
        for number, outcome in enumerate(outcomes):
            record = {
                "episode": number,
                "attempt": 1,
                "scene": number,
                "steps": 3,
                "outcome": outcome,
                "success_at_end": outcome == "success",
                "success_once": outcome == "success",
                "success_at_reset": False,
                "first_alert": 1 if outcome in ("failure", "halted") else None,
                "peak_score": 0.9 if outcome == "failure" else 0.1,
                "faults": {},
                "message": "",
                "wall_s": 1.0,
                **changes,
            }
            lines.write(json.dumps(record) + "\n")
            for step in range(3):
                line = {"episode": number, "attempt": 1, "step": step, "sent": [0.0], **changes}
                steps.write(json.dumps({"score": record["peak_score"], **line}) + "\n")
    return RunFolder(path)


def test_errors_and_halts_are_no_failures(tmp_path: Path) -> None:
    outcomes = ["success"] * 6 + ["failure"] * 2 + ["error", "halted"]
    summary = build_summary(write(tmp_path / "run", outcomes))
    assert set(summary) >= CONTRACT
    assert (summary["episodes"], summary["completed"]) == (10, 8)
    assert (summary["errors"], summary["halted"]) == (1, 1)
    rate = summary["pass_rate"]
    assert (rate["value"], rate["method"]) == (0.75, "wilson")
    assert (round(rate["low"], 3), round(rate["high"], 3)) == (0.409, 0.929)
    assert summary["conservative_rate"]["value"] == 0.6
    assert summary["detection"]["auroc"] == 1.0
    assert (summary["false_alarms"], summary["missed_failures"], summary["alerts"]) == (0, 0, 3)
    assert summary["lead_steps"]["median"] == 2
    json.dumps(summary, allow_nan=False)


def test_no_episodes_are_no_data(tmp_path: Path) -> None:
    summary = build_summary(write(tmp_path / "run", []))
    assert summary["no_data"]
    assert summary["pass_rate"] | {} == {
        "value": None,
        "low": 0.0,
        "high": 1.0,
        "method": "wilson",
        "count": 0,
        "total": 0,
    }
    assert summary["detection"] is None
    assert summary["overhead_us"] is None
    assert summary["steps_per_s"] is None


def test_nothing_sent_is_an_error_whatever_it_says(tmp_path: Path) -> None:
    summary = build_summary(write(tmp_path / "run", ["success"], sent=None))
    assert (summary["errors"], summary["completed"]) == (1, 0)


def test_solved_at_reset_is_counted_apart(tmp_path: Path) -> None:
    summary = build_summary(write(tmp_path / "run", ["success"] * 2, success_at_reset=True))
    assert summary["success_at_reset"] == 2
    assert summary["pass_rate_unsolved"]["value"] is None


@pytest.mark.parametrize(("verdict", "value"), [(True, 1.0), (False, 0.0)])
def test_the_benchmarks_own_verdict_is_counted_beside_ours(
    tmp_path: Path, verdict: bool, value: float
) -> None:
    info = {"final_info": {"success": False, "benchmark_success": verdict}}
    outcomes = ["failure", "failure", "success", "error"]
    summary = build_summary(write(tmp_path / "run", outcomes, **info))
    assert (summary["benchmark_rate"]["value"], summary["benchmark_rate"]["total"]) == (value, 3)
    assert summary["pass_rate"]["count"] == 1


def test_without_a_benchmark_there_is_no_verdict_of_one(tmp_path: Path) -> None:
    assert build_summary(write(tmp_path / "run", ["success"]))["benchmark_rate"] is None


def test_summary_of_a_real_run(watched: Path) -> None:
    summary = build_summary(RunFolder(watched))
    assert summary == RunFolder(watched).summary
    assert (summary["episodes"], summary["errors"]) == (32, 1)
    assert summary["completed"] == 31
    assert 0.6 < summary["pass_rate"]["value"] < 0.9
    assert summary["detection"]["auroc"] > 0.9
    assert set(summary["detection"]["prefixes"]) == {"10", "20", "40"}
    run = Run.load(watched)
    alerts = [one.first_alert for one in run.of("failure") if one.first_alert is not None]
    first = int(np.median(alerts)) + 1
    peaks = {
        kind: [peak for one in run.of(kind) if (peak := prefix_peak(one.scores, first)) is not None]
        for kind in ("success", "failure")
    }
    alarm = summary["detection"]["at_alarm"]
    assert alarm["steps"] == first
    assert alarm["auroc"] == auroc(peaks["success"], peaks["failure"])
    steps = [s["overhead_us"] for rows in RunFolder(watched).steps().values() for s in rows]
    assert summary["overhead_us"]["median"] == pytest.approx(np.median(steps))
