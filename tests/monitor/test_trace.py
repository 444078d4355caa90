from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.jsonable import dumps, encode, jsonable
from monitor.records import Evidence
from monitor.trace import RunFolder, RunWriter, TraceError, read_lines

HEADER: dict[str, Any] = {
    "env": {"name": "fake"},
    "policy": {"name": "hold"},
    "monitor": {"control_dt_s": 0.2},
    "calibration": None,
    "seed": 0,
    "episodes": [{"scene": 0}, {"scene": 1}],
}


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Pair:
    left: Any
    right: Any


def step(episode: int, attempt: int, number: int) -> dict[str, Any]:
    return {"episode": episode, "attempt": attempt, "step": number, "score": 0.1 * number}


def episode_line(episode: int, attempt: int, steps: int) -> dict[str, Any]:
    return {"episode": episode, "attempt": attempt, "steps": steps, "outcome": "success"}


def write_run(folder: Path, episodes: int = 2, steps: int = 3) -> None:
    with RunWriter(folder, HEADER) as writer:
        for episode in range(episodes):
            attempt = writer.begin(episode)
            for number in range(steps):
                writer.write_step(step(episode, attempt, number))
            writer.write_episode(episode_line(episode, attempt, steps))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, None),
        (math.inf, None),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float16(np.inf), None),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.array([[1.0, np.nan]]), [[1.0, None]]),
        (np.array(["x"]), "array(['x'], dtype='<U1')"),
        (np.array([1 + 2j]), "array([1.+2.j])"),
        (np.array([None, 1.5], dtype=object), [None, 1.5]),
        (np.zeros(5000), None),
        ({1: (True, None)}, {"1": [True, None]}),
        ({Colour.RED: Colour.RED}, {"red": "red"}),
        (Pair(1, np.array(2.0)), {"left": 1, "right": 2.0}),
        ({"a"}, ["a"]),
        ({(1, 2): "\ud800"}, {"[1, 2]": "\\ud800"}),
        ({True: 2**70}, {"True": 2**70}),
        (Path("a") / "b", "a/b"),
        (object, "<class 'object'>"),
    ],
)
def test_anything_becomes_json(value: Any, expected: Any) -> None:
    got = jsonable(value)
    assert got == expected
    assert type(got) is type(expected)
    json.dumps(got, allow_nan=False)


def test_tensors_become_lists() -> None:
    torch = pytest.importorskip("torch")
    assert jsonable(torch.tensor([1.0, float("nan")], dtype=torch.bfloat16)) == [1.0, None]
    assert jsonable(torch.tensor([3], requires_grad=False)) == [3]
    assert jsonable(torch.ones(2, requires_grad=True)) == [1.0, 1.0]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_every_bit(value: float) -> None:
    back = json.loads(dumps({"x": np.float64(value)}))["x"]
    assert np.float64(back).tobytes() == np.float64(value).tobytes()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_lines_read_back_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, value: float
) -> None:
    path = tmp_path_factory.mktemp("run") / "steps.jsonl"
    path.write_bytes(encode({"x": [value]}) + b"\n")
    ((back,),) = (line["x"] for line in read_lines(path))
    assert np.float64(back).tobytes() == np.float64(value).tobytes()


def test_half_a_surrogate_pair_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_bytes(b'{"env_error": "\\ud800"}\n')
    assert list(read_lines(path)) == [{"env_error": "\ud800"}]


def test_nothing_stops_a_line() -> None:
    class Broken:
        @property
        def detach(self) -> Any:
            msg = "gone"
            raise RuntimeError(msg)

    endless: list[Any] = []
    endless.append(endless)
    record = {"a": endless, "b": Broken(), "c": {"\ud800": Evidence(policy_error="\udfff")}}
    got = jsonable(record)
    assert set(got) == {"a", "b", "c"}
    assert got["b"] == "<unreadable Broken: gone>"
    (written,) = got["c"].items()
    assert written[0] == "\\ud800"
    assert Evidence.from_json(written[1]) == Evidence(policy_error="\\udfff")


def test_a_run_reads_back(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    run = RunFolder(tmp_path / "run")
    assert run.header["schema"] == 2
    assert run.header["policy"] == {"name": "hold"}
    assert [line["episode"] for line in run.episodes()] == [0, 1]
    assert {number: len(steps) for number, steps in run.steps().items()} == {0: 3, 1: 3}
    assert sorted(run.finished()) == [0, 1]
    assert run.summary is None


def test_a_file_cut_at_any_byte_reads_up_to_the_last_whole_line(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    path = tmp_path / "run" / "steps.jsonl"
    content = path.read_bytes()
    for cut in range(len(content) + 1):
        path.write_bytes(content[:cut])
        assert len(list(read_lines(path))) == content[:cut].count(b"\n")


def test_a_run_cut_at_any_byte_resumes_without_counting_twice(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_run(folder)
    steps, episodes = folder / "steps.jsonl", folder / "episodes.jsonl"
    whole_steps, whole_episodes = steps.read_bytes(), episodes.read_bytes()
    for cut in range(0, len(whole_steps) + 1, 7):
        steps.write_bytes(whole_steps[:cut])
        episodes.write_bytes(whole_episodes)
        with RunWriter(folder, HEADER, resume=True) as writer:
            for episode in {0, 1} - set(writer.finished):
                attempt = writer.begin(episode)
                assert attempt == 2
                for number in range(3):
                    writer.write_step(step(episode, attempt, number))
                writer.write_episode(episode_line(episode, attempt, 3))
        run = RunFolder(folder)
        assert sorted(run.finished()) == [0, 1]
        for found in run.steps().values():
            assert [line["step"] for line in found] == [0, 1, 2]
            assert len({line["attempt"] for line in found}) == 1


def test_an_unfinished_episode_keeps_its_steps_and_is_not_finished(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", HEADER) as writer:
        attempt = writer.begin(0)
        writer.write_step(step(0, attempt, 0))
    run = RunFolder(tmp_path / "run")
    assert [line["step"] for line in run.steps()[0]] == [0]
    assert run.episodes() == []
    assert run.finished() == {}


def test_damage_in_the_middle_is_not_taken_for_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_bytes(b'{"episode": 0}\n\x00\x00\n{"episode": 1}\n')
    with pytest.raises(TraceError, match="line 2 is damaged"):
        list(read_lines(path))


def test_a_run_is_not_overwritten(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    with pytest.raises(TraceError, match="pass --resume"):
        RunWriter(tmp_path / "run", HEADER)


@pytest.mark.parametrize("key", ["env", "policy", "monitor", "calibration", "seed"])
def test_resuming_with_another_configuration_is_refused(tmp_path: Path, key: str) -> None:
    write_run(tmp_path / "run")
    with pytest.raises(TraceError, match=f"another {key}"):
        RunWriter(tmp_path / "run", {**HEADER, key: {"name": "new"}}, resume=True)


def test_resuming_may_add_scenes_but_not_change_them(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    longer = {**HEADER, "episodes": [*HEADER["episodes"], {"scene": 9}]}
    with RunWriter(tmp_path / "run", longer, resume=True) as writer:
        assert sorted(writer.finished) == [0, 1]
    with RunWriter(tmp_path / "run", HEADER, resume=True):
        pass
    assert len(RunFolder(tmp_path / "run").header["episodes"]) == 3
    other = {**HEADER, "episodes": [{"scene": 5}]}
    with pytest.raises(TraceError, match="other scenes"):
        RunWriter(tmp_path / "run", other, resume=True)


def test_two_writers_do_not_share_a_folder(tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("no locks there")
    with (
        RunWriter(tmp_path / "run", HEADER),
        pytest.raises(TraceError, match="another process"),
    ):
        RunWriter(tmp_path / "run", HEADER, resume=True)


def test_no_run_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no run in"):
        RunFolder(tmp_path)


def test_a_damaged_header_is_named(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text('{"schema": 1, ')
    with pytest.raises(TraceError, match=r"run\.json is damaged"):
        _ = RunFolder(tmp_path / "run").header


def test_every_step_written_before_sigkill_reads_back(tmp_path: Path) -> None:
    """The process reports each step after writing it; all it reported must be on disk."""
    if sys.platform == "win32":
        pytest.skip("no SIGKILL there")
    script = textwrap.dedent(
        """
        import sys
        from monitor.trace import RunWriter
        header = {"env": 1, "policy": 1, "monitor": 1, "calibration": None, "seed": 0}
        writer = RunWriter(sys.argv[1], header)
        attempt = writer.begin(0)
        for number in range(10**9):
            writer.write_step({"episode": 0, "attempt": attempt, "step": number, "x": "y" * 500})
            sys.stdout.write(f"{number}\\n")
            sys.stdout.flush()
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "run")], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGKILL)
        reported = process.stdout.read().split()
    steps = RunFolder(tmp_path / "run").steps()[0]
    assert len(steps) >= int(reported[-1]) + 1
    assert [line["step"] for line in steps] == list(range(len(steps)))
