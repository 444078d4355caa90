from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitor.config import MonitorConfig
from monitor.errors import ConfigError
from monitor.study.findings import findings
from monitor.study.monitor_study import StudyConfig, StudyResult, run_monitor_study
from monitor.study.runs import Run

World = tuple[Callable[[], Any], Callable[[], Any]]


def make_study(out: Path, **changes: Any) -> StudyConfig:
    given: dict[str, Any] = {
        "out": out,
        "env": "world",
        "policy": "reacher",
        "clean": [*range(200, 220)],
        "disturbed": [*range(300, 307)],
        "calibrate_on": [*range(100, 130)],
        "alpha": 0.1,
        # Its episodes are too short for the shipped patience.
        "config": MonitorConfig.model_validate({"controller": {"halt_after": 1, "budget": 1}}),
    }
    return StudyConfig(**{**given, **changes})


@pytest.fixture(scope="module")
def studied(world: World, tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    return run_monitor_study(make_study(tmp_path_factory.mktemp("study")), world)


def test_all_that_was_asked_for_is_found(studied: StudyResult) -> None:
    found = studied.findings
    assert studied.complete
    assert found.calibrated
    assert list(found.watched)[:2] == ["clean", "disturbed"]
    assert {"object_pushed", "action_delay", "all"} <= set(found.watched)
    clean, disturbed = found.watched["clean"], found.watched["disturbed"]
    assert clean.episodes == 20
    assert clean.pass_rate.value == 0.8
    assert disturbed.pass_rate.value == 0.0
    assert disturbed.alarmed.value == 1.0
    assert disturbed.detection is None
    assert clean.detection is not None
    assert clean.detection["low"] <= clean.detection["auroc"] <= clean.detection["high"]
    assert clean.lead_steps is not None
    assert clean.lead_steps["median"] > 5
    text = studied.to_text()
    assert "McNemar" in text
    assert "alpha 0.1" in text


def test_watching_never_acts_and_acting_does(studied: StudyResult) -> None:
    for name in ("watch-clean", "watch-disturbed"):
        for one in Run.load(studied.folders[name]).episodes:
            assert one.outcome in ("success", "failure")
            assert all(step["sent"] == step["action"] for step in one.steps)
    assert "halted" in {one.outcome for one in Run.load(studied.folders["act-disturbed"]).episodes}
    effect = studied.findings.effect["disturbed"]
    assert effect.halted == effect.halted_failures.count > 0
    assert effect.off.total == effect.change.pairs == 7


def test_files_hold_what_was_returned(studied: StudyResult) -> None:
    out = studied.folders["watch-clean"].parent
    assert json.loads((out / "study.json").read_text())["watched"]["clean"]["episodes"] == 20
    assert (out / "study.md").read_text().startswith("Monitor watching only")
    again = findings(
        [Run.load(out / "watch-clean"), Run.load(out / "watch-disturbed")],
        [Run.load(out / "act-clean"), Run.load(out / "act-disturbed")],
    )
    assert again == studied.findings


def test_goes_on_where_it_was_killed(world: World, tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", calibrate_on=(), disturbed=(), clean=range(200, 206))
    first = run_monitor_study(study, world)
    lines = tmp_path / "study" / "act-clean" / "episodes.jsonl"
    lines.write_bytes(b"".join(lines.read_bytes().splitlines(keepends=True)[:3]))
    kept = lines.read_bytes()
    second = run_monitor_study(study, world)
    assert lines.read_bytes().startswith(kept)
    assert second.findings == first.findings
    assert not second.findings.calibrated
    assert "UNCALIBRATED" in second.to_text()


@pytest.mark.slow
def test_two_processes_find_the_same(world: World, tmp_path: Path) -> None:
    given: dict[str, Any] = {"calibrate_on": (), "clean": [200, 204], "disturbed": [300]}
    one = run_monitor_study(make_study(tmp_path / "one", **given, acting=False), world)
    two = run_monitor_study(make_study(tmp_path / "two", **given, acting=False, jobs=2), world)
    assert one.findings == two.findings
    assert two.findings.effect == {}


def test_refuses_scenes_that_overlap(world: World, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="keep them apart"):
        run_monitor_study(make_study(tmp_path, calibrate_on=[1, 200]), world)
    with pytest.raises(ConfigError, match="no scenes"):
        run_monitor_study(make_study(tmp_path, clean=[], disturbed=[]), world)


KILLED = """
import os, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from monitor.study.monitor_study import _start_process

if __name__ == "__main__":
    start = dict(initializer=_start_process, initargs=(os.getpid(),))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), **start) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 120).result()
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone can do this")
def test_a_killed_study_leaves_no_worker(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(KILLED, encoding="utf-8")
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as study:
        assert study.stdout is not None
        stat = Path(f"/proc/{int(study.stdout.readline())}/stat")
        assert lives(stat)
        study.kill()
    end = time.monotonic() + 20.0
    while lives(stat):
        assert time.monotonic() < end, "the worker lives on"
        time.sleep(0.1)


def lives(stat: Path) -> bool:
    """Tell whether a process is there, and more than a zombie."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
