from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from monitor.pipeline import Monitor
from monitor.records import Evidence
from monitor.rollout import EpisodeSpec, RunFiles, RunStart, run_episodes, run_header
from monitor.trace import RunFolder

SPECS = [EpisodeSpec(scene=scene, seed=0) for scene in (4, 0, 2)]


def header_of(env: Any, monitor: Monitor, specs: Any = SPECS) -> dict[str, Any]:
    return run_header(
        env_name="fake", env=env, policy_name="reacher", monitor=monitor, specs=specs, seed=0
    )


def summarise(run: RunFolder) -> dict[str, Any]:
    return {"episodes": len(run.episodes())}


def run_specs(env: Any, policy: Any, monitor: Monitor, out: Path, **given: Any) -> Any:
    specs = given.pop("specs", SPECS)
    return run_episodes(
        env,
        policy,
        monitor,
        specs,
        files=RunFiles(
            folder=out,
            header=header_of(env, monitor, specs),
            summarise=summarise,
            resume=given.pop("resume", False),
            retry_errors=given.pop("retry_errors", False),
        ),
        **given,
    )


def test_a_run_lies_on_disk_as_it_ran(
    fake_env: Any, reacher: Any, monitor: Monitor, watcher: Any, tmp_path: Path
) -> None:
    result = run_specs(fake_env(), reacher(), monitor, tmp_path / "run", observers=(watcher,))
    run = RunFolder(tmp_path / "run")
    assert [one.scene for one in result.results] == [4, 0, 2]
    assert [line["scene"] for line in run.episodes()] == [4, 0, 2]
    assert run.summary == {"episodes": 3}
    lines = [line for steps in run.steps().values() for line in steps]
    assert len(lines) == len(watcher.steps)
    for line, record in zip(lines, watcher.steps, strict=True):
        assert line["step"] == record.step
        assert line["score"] == record.decision.score
        assert line["mode"] == record.decision.mode.value
        assert line["metrics"] == dict(record.decision.metrics)
        assert line["action"] == record.inputs.action.tolist()
        assert line["sent"] == record.sent.tolist()
        assert line["goal_distance"] == record.inputs.goal_distance
        assert line["faults"] == [fault.code for fault in record.decision.faults]
    head = run.header
    assert head["env"]["control_dt_s"] == 0.2
    assert head["monitor"]["metrics"]["window"] == 8
    assert [one["scene"] for one in head["episodes"]] == [4, 0, 2]
    assert head["versions"]["numpy"]


def test_the_trace_replays_bit_for_bit(
    fake_env: Any, reacher: Any, monitor: Monitor, tmp_path: Path
) -> None:
    wrong = {11: RuntimeError("once")}
    run_specs(fake_env(), reacher(wrong), monitor, tmp_path / "run")
    run = RunFolder(tmp_path / "run")
    low, high = run.header["env"]["action_low"], run.header["env"]["action_high"]
    again = Monitor(monitor.config, action_low=low, action_high=high)
    for steps in run.steps().values():
        again.reset(instruction=steps[0]["instruction"], task=steps[0]["task"])
        for line in steps:
            decision = again.replay(Evidence.from_json(line["evidence"]))
            assert decision.score == line["score"]
            assert dict(decision.metrics) == line["metrics"]
            assert decision.mode.value == line["mode"]
            action = None if decision.action is None else decision.action.tolist()
            assert action == line["sent"]


def test_ctrl_c_keeps_what_is_finished_and_resume_completes_the_rest(
    fake_env: Any, reacher: Any, monitor: Monitor, watcher: Any, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    env = fake_env(broken={(0, 9): KeyboardInterrupt()})
    first = run_specs(env, reacher(), monitor, out)
    assert first.interrupted
    assert [one.scene for one in first.results] == [4]
    assert RunFolder(out).summary == {"episodes": 1}
    assert len(RunFolder(out).steps()[1]) == 10
    second = run_specs(fake_env(), reacher(), monitor, out, resume=True, observers=(watcher,))
    assert [start.spec.scene for start in watcher.starts] == [0, 2]
    assert watcher.starts[0].attempt == 2
    assert not second.interrupted
    assert [one.scene for one in second.results] == [4, 0, 2]
    assert {number: len(steps) for number, steps in RunFolder(out).steps().items()} == {
        0: 30,
        1: 30,
        2: 30,
    }
    whole = run_specs(fake_env(), reacher(), monitor, tmp_path / "whole")
    keys = ("scene", "steps", "outcome", "peak_score", "modes", "first_success")
    for one, other in zip(second.results, whole.results, strict=True):
        assert [getattr(one, key) for key in keys] == [getattr(other, key) for key in keys]


def test_an_error_costs_one_episode_and_a_fresh_environment(
    fake_env: Any, reacher: Any, monitor: Monitor, tmp_path: Path
) -> None:
    env = fake_env(broken={(0, 3): RuntimeError("device lost")})
    result = run_specs(env, reacher(), monitor, tmp_path / "run", remake=fake_env)
    assert [one.outcome for one in result.results] == ["success", "error", "success"]
    assert result.errors == 1
    assert env.closed
    kept = run_specs(fake_env(), reacher(), monitor, tmp_path / "run", resume=True)
    assert kept.errors == 1
    again = run_specs(
        fake_env(), reacher(), monitor, tmp_path / "run", resume=True, retry_errors=True
    )
    assert again.errors == 0
    assert again.results[1].attempt == 2


def test_a_resumed_run_may_be_longer(
    fake_env: Any, reacher: Any, monitor: Monitor, watcher: Any, tmp_path: Path
) -> None:
    run_specs(fake_env(), reacher(), monitor, tmp_path / "run", specs=SPECS[:1])
    result = run_specs(
        fake_env(), reacher(), monitor, tmp_path / "run", resume=True, observers=(watcher,)
    )
    assert [start.spec.scene for start in watcher.starts] == [0, 2]
    assert len(result.results) == 3


def test_an_observer_of_the_run_is_given_its_episodes(
    fake_env: Any, reacher: Any, monitor: Monitor, watcher: Any, tmp_path: Path
) -> None:
    starts: list[RunStart] = []
    watcher.on_run = starts.append
    run_specs(fake_env(), reacher(), monitor, tmp_path / "run", specs=SPECS[:2])
    run_specs(fake_env(), reacher(), monitor, tmp_path / "run", resume=True, observers=(watcher,))
    assert [one.scene for one in starts[0].done] == [4, 0]
    assert len(starts[0].specs) == 3


def test_nothing_is_written_without_a_folder(
    fake_env: Any, reacher: Any, monitor: Monitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_episodes(fake_env(), reacher(), monitor, SPECS[:1])
    assert result.folder is None
    assert list(tmp_path.iterdir()) == []


def test_every_line_is_strict_json(
    fake_env: Any, reacher: Any, monitor: Monitor, tmp_path: Path
) -> None:
    import numpy as np

    from policies import PolicyOutput

    wrong = {
        5: lambda output: PolicyOutput(
            action=np.array([np.nan, np.inf, 0, 0, 0, 0, 1.0]), token_logits=output.token_logits
        )
    }
    run_specs(fake_env(), reacher(wrong), monitor, tmp_path / "run")

    def refuse(name: str) -> Any:
        raise AssertionError(name)

    for path in (tmp_path / "run").iterdir():
        for line in path.read_text().splitlines() if path.suffix == ".jsonl" else ():
            json.loads(line, parse_constant=refuse)
    last = RunFolder(tmp_path / "run").steps()[0][-1]
    assert last["action"][:3] == [None, None, 0.0]
    assert last["sent"] is None
