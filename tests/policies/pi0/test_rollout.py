"""π0 in the simulator: thirty steps under the monitor, recorded, and decided again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("mani_skill")

from envs import make_env
from monitor import Monitor, MonitorConfig
from monitor.rollout import EpisodeSpec, RunFiles, run_episodes, run_header
from monitor.rollout.preflight.startup import check_start
from monitor.study.replay import replay_run
from policies import load_policy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def test_thirty_steps_run_record_and_replay(checkpoint: Path, tmp_path: Path) -> None:
    env = make_env("widowx-put-on")
    policy = load_policy(
        "pi0", checkpoint=checkpoint, robot="widowx", steps=3, samples=2, expert_scores=True
    )
    space = env.action_space
    config = MonitorConfig.model_validate({"controller": {"enforce": False}})
    monitor = Monitor(config, action_low=space.low, action_high=space.high)
    specs = [EpisodeSpec(scene=0)]
    start = check_start(env, policy, specs[0])
    header = run_header(
        env_name="widowx-put-on", env=env, policy_name="pi0", monitor=monitor, specs=specs
    )
    result = run_episodes(
        env, policy, monitor, specs, files=RunFiles(folder=tmp_path, header=header), max_steps=30
    )
    env.close()

    assert not start.findings
    assert not start.skipped
    assert start.probe is not None
    assert start.probe.mixes
    assert [one.outcome for one in result.results] == ["failure"]
    steps = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text().splitlines()]
    assert len(steps) == 30
    flow = {"EV", "PI0-DV", "PI0-SPREAD", "PI0-TB-E"}
    assert all(step["metrics"][name] is not None for step in steps for name in flow)
    assert all(step["metrics"]["CHUNK"] is not None for step in steps[1:])
    assert not {"NONFINITE_ACTION", "ACTION_SHAPE", "METRIC_ERROR"} & {
        code for step in steps for code in step["faults"]
    }
    replay = replay_run(tmp_path)
    assert (replay.identical, replay.steps) == (True, 30)
