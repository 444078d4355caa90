"""``vlawatch run FILE.yaml``: the options of a run from a file with the schema of a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from monitor.cli.main import main
from monitor.trace import RunFolder

FILE = """
policies: [{name: random, args: {seed: 3}}]
envs: [{name: "tests.monitor.study.conftest:World", max_steps: 4, disturbance: lost}]
scenes: "0:2"
seeds: [7]
monitor: published
watch_only: true
isolate: false
"""


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def run(folder: Path, *arguments: str, text: str = FILE) -> int:
    (folder / "run.yaml").write_text(text, encoding="utf-8")
    given = ["run", str(folder / "run.yaml"), "--no-probe", "--json", *arguments]
    return main([*given, "--out", str(folder / "run")])


def header(folder: Path) -> dict[str, Any]:
    return RunFolder(folder / "run").header


def test_a_file_gives_the_options_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 2
    head = header(tmp_path)
    assert head["policy"] == {"name": "random", "kwargs": {"seed": 3}}
    assert head["env"]["name"] == "tests.monitor.study.conftest:World"
    assert head["seed"] == 7
    assert [one["options"] for one in head["episodes"]] == [{"disturbance": "lost"}] * 2
    assert head["thresholds"] == {"tau_recover": 0.35, "tau_halt": 0.65}
    assert head["monitor"]["controller"]["enforce"] is False
    assert {one["steps"] for one in RunFolder(tmp_path / "run").episodes()} == {4}


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    assert run(tmp_path, "--scenes", "5", "--seed", "1", "--monitor", "default") == 0
    head = header(tmp_path)
    assert [one["scene"] for one in head["episodes"]] == [5]
    assert head["seed"] == 1
    assert head["thresholds_from"]["tau_recover"] == "default"


def test_a_file_of_several_runs_is_for_a_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, text=FILE.replace("[7]", "[7, 8]")) == 2
    assert "2 seeds" in (said := capsys.readouterr().err)
    assert "`vlawatch sweep`" in said
    assert not (tmp_path / "run").exists()


def test_a_mistyped_key_is_answered_with_the_near_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, text=FILE.replace("watch_only", "watch_onli")) == 2
    assert "did you mean 'watch_only'?" in capsys.readouterr().err
