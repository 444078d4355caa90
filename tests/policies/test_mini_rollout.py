"""The small policies with chunks in closed loop: they do the task, traces replay, scenes repeat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("mani_skill")

from monitor.cli.main import main

pytestmark = [
    pytest.mark.slow,
    # Both come from the simulator and its dependencies.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

SCENES, STEPS = "4:6", 27
METRICS = {
    "spatialvla-mini": ("TB-E", "TB-TP", "TB-PCS", "TB-D", "A-PI", "TCP-VI", "EV", "CHUNK"),
    "pi0-mini": ("A-PI", "TCP-VI", "EV", "CHUNK", "PI0-DV", "PI0-SPREAD", "PI0-OVERLAP"),
}


def start(name: str, folder: Path, scenes: str, steps: int) -> Path:
    arguments = ["--env", "widowx-put-on", "--policy", name, "--policy-arg", "samples=2"]
    length = ["--scenes", scenes, "--max-steps", str(steps), "--watch-only", "--no-live"]
    assert main(["run", *arguments, *length, "--out", str(folder)]) == 0
    return folder


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    text = (folder / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module", params=METRICS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def run(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder: two scenes of at most 27 steps."""
    return start(name, tmp_path_factory.mktemp("runs") / "a", SCENES, STEPS)


def test_it_does_the_task(run: Path) -> None:
    done = [one["success_once"] for one in lines(run, "episodes")]
    assert done == [True, True]


def test_every_signal_reaches_the_monitor(name: str, run: Path) -> None:
    last = lines(run, "steps")[-1]
    for metric in METRICS[name]:
        assert last["metrics"][metric] is not None, metric
    faults = {code for step in lines(run, "steps") for code in step["faults"]}
    assert not faults & {"MALFORMED_TOKENS", "POLICY_ERROR", "ACTION_RANGE", "OFF_VOCAB_TOKEN"}


def test_the_run_was_checked_before_its_first_step(run: Path) -> None:
    begun = json.loads((run / "run.json").read_text(encoding="utf-8"))["start"]
    assert begun["probe"]["sees"] is True
    assert [one["code"] for one in begun["findings"] if one["refuses"]] == []


def test_the_trace_replays_bit_for_bit(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(run)]) == 0
    assert "identical" in capsys.readouterr().out


def test_a_scene_repeats_itself(name: str, run: Path, tmp_path: Path) -> None:
    again = lines(start(name, tmp_path / "b", "4:5", 5), "steps")
    first = [step for step in lines(run, "steps") if step["scene"] == 4]
    assert [step["action"] for step in again] == [step["action"] for step in first[:5]]
