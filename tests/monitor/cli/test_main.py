from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from monitor.cli.main import main
from monitor.trace import RunFolder

COMMANDS = (
    "run",
    "study",
    "replay",
    "calibrate",
    "report",
    "quality",
    "grade",
    "export",
    "envs",
    "policies",
    "metrics",
    "probe",
    "serve-policy",
    "proxy",
    "doctor",
    "bench",
)


def vlawatch(*arguments: Any, **given: Any) -> subprocess.CompletedProcess[str]:
    """The console script in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "monitor.cli.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        **given,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert "Usage: vlawatch" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--out", "x", "start"]])
def test_the_command_that_moved_says_where_it_went(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "`vlawatch study monitor`" in captured.err
    assert captured.out == ""


def test_help_is_fast_and_light() -> None:
    script = (
        "import sys\n"
        "from monitor.cli.main import main\n"
        "code = main(['--help'])\n"
        "heavy = {'torch', 'scipy', 'gymnasium', 'transformers', 'sapien', 'matplotlib', "
        "'pandas'}\n"
        "sys.exit(code or ', '.join(heavy & set(sys.modules)) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert all(command in done.stdout for command in COMMANDS)


def test_the_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["envs", "--json"]) == 0
    assert "widowx-put-on" in json.loads(capsys.readouterr().out)
    assert main(["policies", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"openvla-mini", "expert", "random", "hold"} <= set(listed)
    assert listed["openvla"]["checkpoints"][0] == "openvla/openvla-7b"
    assert listed["openvla"]["robots"] == ["widowx", "google_robot"]
    assert {"token_logits", "samples", "chunk"} <= set(listed["spatialvla"]["signals"])
    arguments = {one["name"]: one for one in listed["spatialvla"]["arguments"]}
    assert arguments["execute_steps"]["default"] == 1
    assert arguments["checkpoint"]["required"]
    assert listed["pi0"]["extra"] == "vla"
    assert main(["metrics"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows[0][0] == "id"
    assert {"TB-E", "A-PI", "TCP-VI", "TI", "OT", "NIS"} <= {row[0] for row in rows}
    assert {len(row) for row in rows} == {8}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--scenes", "x"], "cannot read scenes 'x'"),
        (["run", "--env", "widowx-puton"], "did you mean 'widowx-put-on'"),
        (["run", "--resume"], "--resume needs --out"),
        (["run", "--nonsense"], "No such option"),
        (["nonsense"], "No such command"),
        (["export", "."], "--parquet"),
    ],
)
def test_wrong_usage_is_code_2_and_says_what_to_do(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOSPC, 1), (errno.EROFS, 1), (errno.ENOTDIR, 2), (errno.EACCES, 2)]
)
def test_a_disk_that_takes_nothing_is_one_line(
    number: int,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(**_: Any) -> None:
        raise OSError(number, os.strerror(number), "out/steps.jsonl")

    monkeypatch.setattr("monitor.cli.app.app", fail)
    assert main(["run"]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert os.strerror(number) in line
    assert "out/steps.jsonl" in line


def test_without_the_extra_the_pip_command_is_printed() -> None:
    script = (
        "import sys\n"
        "sys.modules['typer'] = None\n"
        "from monitor.cli.main import main\n"
        "sys.exit(main(['envs']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "pip install 'vlawatch[cli]'" in done.stderr


def test_bench_overhead(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "overhead", "--quick", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["timings"]
    names = [row["what"] for row in rows]
    assert any("motion + filter" in name for name in names)
    assert any("7×32064" in name for name in names)
    assert all(0 < row["median_us"] <= row["p99_us"] for row in rows)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands in this process must not change the environment of other tests."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
class TestWithTheSimulator:
    @pytest.fixture(autouse=True)
    def _needs_it(self) -> None:
        pytest.importorskip("mani_skill")

    @pytest.mark.parametrize("isolate", [(), ("--isolate",)])
    def test_a_machine_without_vulkan_is_told_so(
        self, isolate: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("VK_ICD_FILENAMES", "VK_DRIVER_FILES"):
            monkeypatch.setenv(name, str(tmp_path / "absent.json"))
        out = tmp_path / "run"
        done = vlawatch("run", "--policy", "hold", "--scenes", 0, "--out", out, *isolate)
        assert done.returncode == 3, done.stderr
        assert "widowx-put-on did not start: " in done.stderr
        assert "vlawatch doctor" in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
        assert not out.exists()

    def test_a_run_is_plain_and_exact_in_a_pipe(self, tmp_path: Path) -> None:
        out = tmp_path / "run"
        done = vlawatch(
            "run", "--policy", "hold", "--scenes", "0:2", "--max-steps", 6, "--out", out
        )
        assert done.returncode == 0, done.stderr
        assert "2 of 2 episodes" in done.stdout
        assert "\x1b" not in done.stdout + done.stderr
        assert '[1/2] scene 0: "put the ' in done.stderr
        assert len(RunFolder(out).episodes()) == 2
        again = vlawatch("run", "--policy", "hold", "--scenes", "0:2", "--out", out)
        assert again.returncode == 2
        assert "pass --resume" in again.stderr

    def test_killed_in_the_middle_it_resumes(self, tmp_path: Path) -> None:
        out = tmp_path / "run"
        command = ("run", "--policy", "hold", "--scenes", "0:3", "--max-steps", 25, "--out", out)
        with subprocess.Popen(
            [sys.executable, "-m", "monitor.cli.main", *map(str, command)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            steps, deadline = out / "steps.jsonl", time.monotonic() + 120
            # 30 lines: the second episode is under way.
            while not (steps.exists() and steps.read_bytes().count(b"\n") >= 30):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            os.kill(process.pid, signal.SIGKILL)
        before = RunFolder(out)
        assert [line["episode"] for line in before.episodes()] == [0]
        kept = before.steps()
        assert [line["step"] for line in kept[1]] == list(range(len(kept[1])))
        done = vlawatch(*command, "--resume", "--json")
        assert done.returncode == 0, done.stderr
        after = RunFolder(out)
        assert sorted(after.finished()) == [0, 1, 2]
        assert after.steps()[0] == kept[0]
        assert {line["attempt"] for line in after.steps()[1]} == {2}
        assert json.loads(done.stdout)["episodes"] == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--policy", "openvl"), "did you mean 'openvla'?"),
        (("--policy", "openvla"), "needs --checkpoint DIR; for example `hf download openvla/"),
        (("--policy", "openvla", "--checkpoint", "/nowhere"), "/nowhere is not a folder"),
        (("--policy", "pi0", "--policy-arg", "checkpoint=/nowhere"), "/nowhere is not a folder"),
        (("--policy", "hold", "--monitor", "nowhere"), "nowhere"),
        (("--policy", "remote"), "needs --url ws://HOST:PORT"),
        (("--policy", "random", "--policy-arg", "sed=3"), "did you mean 'seed'?"),
        (
            ("--policy", "hold", "--policy-arg", "seed=3"),
            "policy 'hold': it takes none, got 'seed'",
        ),
        (("--policy", "hold", "--env", "nomodule:X"), "no module 'nomodule'"),
        (("--policy", "hold", "--env", "envs.nowhere:X"), "no module 'envs.nowhere'"),
        (("--policy", "hold", "--env", "fractions:Fracton"), "did you mean 'Fraction'?"),
        (("--policy-arg", "sample=4"), "did you mean 'samples'?"),
        (("--policy", "hold", "--env", ":X"), "expected package.module:Class"),
        (("--policy", "hold", "--out", "/dev/null/run"), "cannot write to /dev/null/run"),
        (("--policy", "hold", "--resume", "--out", "/dev/null/run"), "choose another --out"),
        (("--policy", "hold", "--out", "/tmp/" + "x" * 300), "name too long"),
    ],
)
def test_a_mistyped_name_is_said_before_the_simulator_starts(
    arguments: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def start(*_: Any, **__: Any) -> Any:
        pytest.fail("the simulator was started")

    monkeypatch.setattr("envs.make_env", start)
    assert main(["run", "--out", str(tmp_path / "run"), *arguments]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_class_that_is_no_environment_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given = ["--policy", "hold", "--env", "json:JSONDecoder", "--out", str(tmp_path / "run")]
    assert main(["run", *given]) == 2
    said = "makes a JSONDecoder without reset, step, action_space; expected a gymnasium.Env"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["study monitor", "calibrate"])
def test_what_takes_long_first_sees_that_it_can_be_written(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = (".",) if command == "calibrate" else ()
    assert main([*command.split(), *runs, "--out", "/dev/null/there/file"]) == 2
    assert "cannot write to /dev/null/there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("policy", "env", "said"),
    [
        ("holdd", "widowx-put-on", "did you mean 'hold'?"),
        ("hold", "widowx-put-onn", "did you mean 'widowx-put-on'?"),
        ("{name: openvla, args: {checkpoint: /nowhere}}", "widowx-put-on", "is not a folder"),
    ],
)
def test_a_sweep_with_a_mistyped_name_starts_nothing(
    policy: str, env: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plan = tmp_path / "sweep.yaml"
    plan.write_text(f"policies: [{policy}]\nenvs: [{env}]\nscenes: 0:2\n", encoding="utf-8")
    assert main(["sweep", str(plan), "--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("envs", "--check", "widowx-put-onn"), "did you mean 'widowx-put-on'?"),
        (("proxy", "--upstream", "ws://x", "--action-low=-1,-1", "--action-high=1"), "as many"),
        (("proxy", "--upstream", "ws://x", "--action-low=1,1", "--action-high=1,2"), "below its"),
    ],
)
def test_what_cannot_be_checked_or_watched_is_wrong_usage(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = ("--out", str(tmp_path / "run")) if arguments[0] == "proxy" else ()
    assert main([*arguments, *out]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("command", ["serve-policy", "proxy"])
def test_a_taken_port_is_wrong_usage_before_a_policy_is_loaded(
    command: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    pytest.importorskip("websockets")

    def load(*_: Any, **__: Any) -> Any:
        pytest.fail("the policy was loaded")

    monkeypatch.setattr("policies.load_policy", load)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        where = {
            "serve-policy": ["--policy", "hold", "--port", port],
            "proxy": ["--upstream", "ws://127.0.0.1:1", "--listen", f"127.0.0.1:{port}"],
        }
        out = ["--out", str(tmp_path / "run")] if command == "proxy" else []
        assert main([command, *where[command], *out]) == 2
    captured = capsys.readouterr()
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in captured.err
    assert "0 takes a free one" in captured.err
