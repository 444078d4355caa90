"""SpatialVLA in the environment, from the first image to the replay of its trace."""

from __future__ import annotations

import json
from pathlib import Path

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

STEPS = 30


@pytest.fixture(scope="module")
def run(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder: one episode of 30 steps, checked before its first step."""
    folder = tmp_path_factory.mktemp("runs") / "spatialvla"
    arguments = ["--env", "widowx-put-on", "--policy", "spatialvla", "--checkpoint", str(tiny)]
    arguments += ["--unnorm-key", "toy_kitchen", "--policy-arg", "robot=widowx"]
    arguments += ["--policy-arg", "samples=3"]
    length = ["--scenes", "0:1", "--max-steps", str(STEPS), "--watch-only"]
    assert main(["run", *arguments, *length, "--no-live", "--out", str(folder)]) == 0
    return folder


def test_the_episode_runs_to_its_end_with_every_signal(run: Path) -> None:
    lines = (run / "steps.jsonl").read_text(encoding="utf-8").splitlines()
    steps = [json.loads(line) for line in lines]
    assert len(steps) == STEPS
    last = steps[-1]
    assert len(last["action"]) == 7
    for metric in ("TB-E", "TB-TP", "TB-PCS", "TB-D", "A-PI", "TCP-VI", "EV", "CHUNK"):
        assert last["metrics"][metric] is not None, metric
    (episode,) = (run / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(episode)["outcome"] in ("success", "failure")
    faults = {code for step in steps for code in step["faults"]}
    assert not faults & {"MALFORMED_TOKENS", "POLICY_ERROR", "ACTION_RANGE", "OFF_VOCAB_TOKEN"}


def test_the_run_was_checked_before_its_first_step(run: Path) -> None:
    start = json.loads((run / "run.json").read_text(encoding="utf-8"))["start"]
    assert start["probe"]["sees"] is True
    assert start["probe"]["prefix"] > 0.01
    assert [one["code"] for one in start["findings"] if one["refuses"]] == []


def test_the_trace_replays_bit_for_bit(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(run)]) == 0
    assert "identical" in capsys.readouterr().out
