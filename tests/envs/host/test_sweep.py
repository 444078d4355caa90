from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envs import make_env
from envs.host.hosted import Deadlines, HostedEnv
from monitor.pipeline import Monitor
from monitor.rollout import EpisodeSpec, RunFiles, RunResult, run_episodes, run_header
from monitor.trace import RunFolder
from policies import load_policy

pytestmark = pytest.mark.slow

SPECS = [EpisodeSpec(scene=scene, seed=0) for scene in (0, 1, 2, 3)]
TIMINGS = {"wall_s", "policy_ms", "overhead_us", "latency_s", "latency", "t"}


def run_specs(
    env: Any,
    out: Path,
    *,
    resume: bool = False,
    retry_errors: bool = False,
    remake: Callable[[], Any] | None = None,
) -> RunResult:
    space = env.action_space
    monitor = Monitor(action_low=space.low, action_high=space.high)
    policy = load_policy("expert")
    header = run_header(
        env_name="double", env=env, policy_name="expert", monitor=monitor, specs=SPECS
    )
    files = RunFiles(folder=out, header=header, resume=resume, retry_errors=retry_errors)
    result = run_episodes(env, policy, monitor, SPECS, files=files, remake=remake)
    env.close()
    return result


def hosted(name: str) -> HostedEnv:
    return HostedEnv(f"host_doubles:{name}", deadlines=Deadlines(step_s=1.0))


def without_timings(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_timings(one) for key, one in value.items() if key not in TIMINGS}
    if isinstance(value, list):
        return [without_timings(one) for one in value]
    return value


@pytest.mark.parametrize("name", ["ReachEnv", "RaisingEnv"])
def test_a_hosted_run_leaves_the_trace_of_one_in_process(name: str, tmp_path: Path) -> None:
    run_specs(make_env(f"host_doubles:{name}"), tmp_path / "here")
    run_specs(hosted(name), tmp_path / "there")
    here, there = RunFolder(tmp_path / "here"), RunFolder(tmp_path / "there")
    assert without_timings(here.steps()) == without_timings(there.steps())
    assert without_timings(here.episodes()) == without_timings(there.episodes())
    assert here.header["env"] == there.header["env"]
    assert here.header["env_host"] is None
    assert there.header["env_host"]["versions"]["numpy"] == np.__version__
    broken = [one["message"] for one in there.episodes() if one["outcome"] == "error"]
    assert len(broken) == (name == "RaisingEnv")
    for message in broken:
        assert message.startswith(
            "environment raised at step 3: FloatingPointError: the solver diverged "
            "(host_doubles.py:"
        )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SegfaultingEnv", "environment process died: SIGSEGV at step 3 of scene 2"),
        ("SpinningEnv", "environment hung at step 3 of scene 2: no answer in 1 s"),
        ("RaisingEnv", "FloatingPointError: the solver diverged"),
    ],
)
def test_a_broken_simulator_costs_its_episode_and_no_other(
    name: str, message: str, tmp_path: Path
) -> None:
    whole = run_specs(make_env("host_doubles:ReachEnv"), tmp_path / "whole")
    out = tmp_path / "run"
    result = run_specs(hosted(name), out, remake=lambda: hosted(name))
    assert [one.outcome for one in result.results] == ["success", "success", "error", "success"]
    assert message in result.results[2].message
    assert result.results[2].steps == 5  # four that were sent, and the one that says what broke
    for one, other in zip(result.results, whole.results, strict=True):
        if one.outcome != "error":
            assert (one.steps, one.peak_score) == (other.steps, other.peak_score)

    again = run_specs(make_env("host_doubles:ReachEnv"), out, resume=True)
    assert [one.attempt for one in again.results] == [1, 1, 1, 1]
    assert again.errors == 1
    mended = run_specs(make_env("host_doubles:ReachEnv"), out, resume=True, retry_errors=True)
    assert [one.attempt for one in mended.results] == [1, 1, 2, 1]
    assert [one.outcome for one in mended.results] == ["success"] * 4


def test_a_simulator_that_cannot_start_again_costs_what_it_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    monkeypatch.setenv("HOST_DOUBLES_BROKEN", str(broken))
    tries: list[None] = []
    made: list[HostedEnv] = []

    def remake() -> HostedEnv:
        if len(tries) == 1:
            broken.unlink()
        tries.append(None)
        made.append(hosted("DoomedEnv"))
        return made[-1]

    specs = [EpisodeSpec(scene=scene) for scene in (2, 0, 1)]
    env = hosted("DoomedEnv")
    monitor = Monitor(action_low=env.action_space.low, action_high=env.action_space.high)
    result = run_episodes(env, load_policy("expert"), monitor, specs, remake=remake)
    assert [one.outcome for one in result.results] == ["error", "error", "success"]
    assert "SIGABRT at step 3 of scene 2" in result.results[0].message
    assert (
        "environment raised at reset: RuntimeError: the device is lost" in result.results[1].message
    )
    env.close()


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_a_kill_end_both_processes(
    number: signal.Signals, tmp_path: Path, processes: Any
) -> None:
    out = tmp_path / "run"
    command = ["run", "--env", "host_doubles:SleepingEnv", "--isolate", "--policy", "expert"]
    arguments = [*command, "--scenes", "0,2,1", "--out", str(out)]
    run = subprocess.Popen(
        [sys.executable, "-m", "monitor.cli.main", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    episodes = out / "episodes.jsonl"
    assert processes.until(lambda: episodes.exists() and "\n" in episodes.read_text(), limit_s=60.0)
    (child,) = map(int, Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split())
    assert processes.of_group(child) == [child]
    run.send_signal(number)
    _, said = run.communicate(timeout=20.0)
    assert processes.gone(child)
    assert [one["scene"] for one in RunFolder(out).episodes()] == [0]
    if number is signal.SIGINT:
        assert run.returncode == 1
        assert "Traceback" not in said
        assert (out / "summary.json").exists()
