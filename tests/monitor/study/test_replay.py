from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from monitor import MonitorConfig
from monitor.study.replay import replay_run


def test_a_run_replays_to_the_last_bit(watched: Path, enforced: Path) -> None:
    for run in (watched, enforced):
        replay = replay_run(run)
        assert replay.identical, replay.to_text()
        assert replay.steps > 150
        assert "identical" in replay.to_text()


def test_a_changed_bit_is_named(watched: Path, tmp_path: Path) -> None:
    shutil.copytree(watched, tmp_path / "run")
    path = tmp_path / "run" / "steps.jsonl"
    lines = path.read_text().splitlines()
    record = json.loads(lines[15])
    record["score"] += 2**-50
    lines[15] = json.dumps(record)
    path.write_text("\n".join(lines) + "\n")
    replay = replay_run(tmp_path / "run")
    assert replay.differing == 1
    assert replay.differences[0].field == "score"
    assert "step 15" in replay.to_text()


def test_another_configuration_shows_other_alerts(watched: Path) -> None:
    deaf = MonitorConfig.model_validate(
        {"controller": {"tau_recover": 2.0, "tau_halt": 2.0, "enforce": False}}
    )
    replay = replay_run(watched, config=deaf)
    alerts = replay.to_json()["alerts"]
    assert (
        alerts["now"]["failures without an alert"] > alerts["before"]["failures without an alert"]
    )
    assert "as recorded" in replay.to_text()


def test_a_killed_run_replays_up_to_its_last_line(watched: Path, tmp_path: Path) -> None:
    shutil.copytree(watched, tmp_path / "run")
    for name in ("steps.jsonl", "episodes.jsonl"):
        path = tmp_path / "run" / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    replay = replay_run(tmp_path / "run")
    assert replay.identical
    assert replay.steps == pytest.approx(31 * 24 / 2, abs=40)
