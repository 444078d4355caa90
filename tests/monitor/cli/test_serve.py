"""Policies in processes of their own, against the same policy in this one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("websockets")

from monitor import Monitor, MonitorConfig
from monitor.cli.main import main
from monitor.rollout import (
    EpisodeResult,
    EpisodeSpec,
    EpisodeStart,
    RunFiles,
    StepRecord,
    run_episodes,
)
from monitor.trace import RunFolder
from policies import load_policy
from policies.wire.address import Listen
from policies.wire.listener import Listener
from policies.wire.server import PolicyService

pytestmark = [
    # SAPIEN and gymnasium warn about themselves while they are imported.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.timeout(900),  # several processes, each with its imports
]
STEPS = 4
TIMINGS = ("policy_ms", "overhead_us")


class Processes:
    """Commands of ours in processes that end with the test."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def start(self, *arguments: str) -> tuple[subprocess.Popen[str], str]:
        """Start a command that serves; its process, and the URL that it prints first."""
        process = subprocess.Popen(
            [sys.executable, "-m", "monitor.cli.main", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._stack.callback(self._end, process)
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("ws://127.0.0.1:"), f"{arguments} printed {url!r}"
        return process, url

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        process.terminate()
        assert process.stdout is not None
        process.stdout.close()
        process.wait(60)


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with ExitStack() as stack:
        yield Processes(stack)


@pytest.fixture(scope="module")
def env() -> Iterator[Any]:
    from envs import make_env

    made = make_env("widowx-put-on")
    yield made
    made.close()


def watcher(env: Any) -> Monitor:
    """A monitor for which no machine is too slow: lateness is a fault and a timing at once."""
    config = MonitorConfig.model_validate({"faults": {"deadline_s": 600.0}})
    space = env.action_space
    return Monitor(config, action_low=space.low, action_high=space.high)


def trace(env: Any, policy: Any, out: Path, episodes: int = 2) -> Path:
    specs = [EpisodeSpec(scene=scene, seed=0) for scene in range(episodes)]
    result = run_episodes(
        env, policy, watcher(env), specs, files=RunFiles(folder=out), max_steps=STEPS
    )
    assert result.errors == 0
    return out


def untimed(folder: Path) -> tuple[list[Any], list[Any]]:
    """Episodes and steps of a run without what no two runs share."""
    run = RunFolder(folder)
    episodes = [{k: v for k, v in one.items() if k != "wall_s"} for one in run.episodes()]
    steps = [step for of in run.steps().values() for step in of]
    for step in steps:
        for name in TIMINGS:
            del step[name]
        del step["evidence"]["latency_s"]
    return episodes, steps


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_a_policy_elsewhere_leaves_the_same_trace(
    env: Any, processes: Processes, tmp_path: Path
) -> None:
    """In this process, in another one, and through a proxy in a third."""
    here = trace(env, load_policy("openvla-mini"), tmp_path / "here")
    _, url = processes.start("serve-policy", "--policy", "openvla-mini", "--port", "0")
    there = load_policy("remote", url=url)
    away = trace(env, there, tmp_path / "away")
    assert untimed(away) == untimed(here)
    assert there.name == "remote"
    there.close()  # type: ignore[attr-defined]

    watched = tmp_path / "watched"
    process, between = processes.start(
        "proxy", "--upstream", url, "--listen", "127.0.0.1:0", "--out", str(watched)
    )
    through = load_policy("remote", url=between)
    passed = untimed(trace(env, through, tmp_path / "passed", episodes=1))
    first = [[one for one in lines if one["episode"] == 0] for lines in untimed(here)]
    assert list(passed) == first
    through.close()  # type: ignore[attr-defined]

    # The proxy sees no more than the policy does: neither success nor distance.
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    _, seen = untimed(watched)
    _, own = first
    for step in own:
        for private in ("goal_distance", "success"):
            step["evidence"].pop(private, None)
    assert [step["evidence"] for step in seen] == [step["evidence"] for step in own]
    assert [step["action"] for step in seen] == [step["action"] for step in own]
    assert [step["sent"] for step in seen] == [step["action"] for step in own]
    assert json.loads((watched / "summary.json").read_text())["episodes"] == 1
    assert RunFolder(watched).header["policy"]["name"] == "openvla-mini"


@pytest.mark.slow
def test_the_bounds_of_the_environment_reach_a_policy_elsewhere(env: Any, tmp_path: Path) -> None:
    """``random`` draws between them: an end rounded on the way would change every action."""
    here = trace(env, load_policy("random"), tmp_path / "here")
    service = PolicyService(lambda: load_policy("random"))
    with Listener(service, Listen(port=0)).background() as url:
        away = trace(env, load_policy("remote", url=url), tmp_path / "away")
    assert untimed(away) == untimed(here)


@pytest.mark.slow
def test_a_killed_server_costs_one_episode(env: Any, processes: Processes, tmp_path: Path) -> None:
    process, url = processes.start("serve-policy", "--policy", "hold", "--port", "0")
    port = url.rpartition(":")[2]

    class Killer:
        """Kills the server within the first episode and starts it again before the second."""

        episode = 0

        def on_start(self, start: EpisodeStart) -> None:
            self.episode = start.episode

        def on_step(self, record: StepRecord) -> None:
            if (self.episode, record.step) == (0, 1):
                process.kill()
                process.wait(60)

        def on_end(self, result: EpisodeResult) -> None:
            if result.episode == 0:
                processes.start("serve-policy", "--policy", "hold", "--port", port)

    specs = [EpisodeSpec(scene=scene, seed=0) for scene in range(2)]
    result = run_episodes(
        env,
        load_policy("remote", url=url),
        watcher(env),
        specs,
        files=RunFiles(folder=tmp_path / "run"),
        observers=[Killer()],
        max_steps=STEPS,
    )
    first, second = result.results
    assert (first.outcome, first.steps) == ("error", 3)
    assert f"policy raised at step 2: ServerGoneError: {url} is gone" in first.message
    assert "the next episode connects again" in first.message
    assert first.faults["POLICY_ERROR"] == 1
    assert (second.outcome, second.steps, second.message) == ("failure", STEPS, "")


@pytest.mark.slow
def test_a_server_ends_as_it_is_told(processes: Processes) -> None:
    process, _ = processes.start("serve-policy", "--policy", "hold", "--port", "0")
    process.terminate()
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["serve-policy", "--policy", "hold", "--host", "0.0.0.0"], "--api-key-env"),
        (["serve-policy", "--policy", "expert"], "not sent over the wire"),
        (["serve-policy", "--policy", "hold", "--api-key-env", "NO_SUCH"], "no such variable"),
        (["serve-policy", "--policy", "hold", "--key", "picture=x"], "unknown key 'picture'"),
        (["serve-policy", "--policy", "hold", "--key", "image"], "expected NAME=VALUE"),
        (["serve-policy", "--policy", "hold", "--always", "logits"], "unknown signal"),
        (["serve-policy", "--policy", "hold", "--policy-arg", "x={"], "not YAML"),
        (["proxy", "--upstream", "http://127.0.0.1"], "is not a policy server"),
        (["proxy", "--upstream", "127.0.0.1:8000", "--listen", "9000"], "is not an address"),
        (["proxy", "--upstream", "127.0.0.1:8000", "--listen", "[::]:9000"], "--api-key-env"),
        (["proxy", "--upstream", "127.0.0.1:8000", "--action-low", "1"], "go together"),
        (["proxy", "--upstream", "127.0.0.1:8000", "--split", "promt"], "unknown split"),
        (
            ["proxy", "--upstream", "127.0.0.1:8000", "--action-low=-1,x", "--action-high=1,1"],
            "expected comma-separated numbers",
        ),
    ],
    ids=lambda value: " ".join(value[:5])[:40] if isinstance(value, list) else "",
)
def test_wrong_usage_ends_at_once_and_says_what_to_do(
    arguments: list[str],
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("VLAWATCH_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert text in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
