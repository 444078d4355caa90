from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from monitor.study.merge import merge_runs
from monitor.study.runs import Run
from monitor.study.sweep import FleetResult, SweepConfig, read_status, run_fleet
from monitor.trace import RunFolder, TraceError

pytestmark = pytest.mark.slow

FAKE = Path(__file__).parent / "fake_run.py"


def command(arguments: Sequence[str]) -> Sequence[str]:
    return [sys.executable, str(FAKE), *arguments]


def plan(
    *policies: str, scenes: str = "0:5", part: int = 2, seeds: Sequence[int] = (0,)
) -> SweepConfig:
    return SweepConfig.model_validate(
        {
            "policies": policies,
            "envs": ["table"],
            "scenes": scenes,
            "part_episodes": part,
            "seeds": seeds,
            "isolate": False,
        }
    )


def run(
    wanted: SweepConfig, out: Path, *, resume: bool = False, retry_errors: bool = False
) -> FleetResult:
    return run_fleet(wanted, out, jobs=2, resume=resume, retry_errors=retry_errors, command=command)


def test_every_episode_runs_once_and_the_parts_merge_to_one_run(tmp_path: Path) -> None:
    result = run(plan("steady"), tmp_path)
    (cell,) = result.status.cells
    assert result.complete
    assert (cell.finished, cell.planned) == (5, 5)
    assert cell.outcomes == {"success": 2, "failure": 3}
    assert cell.pass_rate.value == pytest.approx(0.4)
    assert cell.alerted == 1
    assert len(cell.folders) == 3
    # As the README has a shell do it: what the pattern matches are run folders and nothing else.
    assert sorted(cell.folders[0].parent.glob("part-*")) == sorted(cell.folders)
    merged = merge_runs(cell.folders, tmp_path / "merged")
    found = Run.load(merged)
    assert [episode.scene for episode in found.episodes] == [0, 1, 2, 3, 4]
    assert [episode.number for episode in found.episodes] == [0, 1, 2, 3, 4]
    assert all(len(episode.steps) == 1 for episode in found.episodes)
    assert merged.summary is not None
    assert merged.summary["success_at_end"] == 0  # the double writes no such verdict
    assert merged.summary["episodes"] == 5


def test_a_process_that_dies_costs_nothing_but_time(tmp_path: Path) -> None:
    result = run(plan("dies", part=5), tmp_path)
    (cell,) = result.status.cells
    assert result.complete
    steps = RunFolder(cell.folders[0]).steps()
    assert [steps[number][-1]["attempt"] for number in range(5)] == [1, 2, 1, 1, 1]


def test_a_process_that_always_dies_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    result = run(plan("always-dies", "steady", scenes="0:2"), tmp_path)
    dead, steady = result.status.cells
    assert not result.complete
    assert dead.finished == 0
    assert dead.problem is not None
    assert "SIGSEGV" in dead.problem
    assert steady.finished == 2
    assert steady.problem is None


def test_what_the_run_refuses_is_said_with_its_words(tmp_path: Path) -> None:
    result = run(plan("refuses", scenes="0"), tmp_path)
    problem = result.status.cells[0].problem
    assert problem is not None
    assert "exit code 2" in problem
    assert "unknown policy 'refuses'" in problem


def test_resume_runs_only_what_is_missing(tmp_path: Path) -> None:
    run(plan("steady", scenes="0:3", part=2), tmp_path)
    with pytest.raises(TraceError, match="--resume"):
        run(plan("steady", scenes="0:3", part=2), tmp_path)
    more = plan("steady", "breaks", scenes="0:5", part=2)
    result = run(more, tmp_path, resume=True)
    steady, breaks = result.status.cells
    assert steady.finished == 5
    attempts = [
        episode["attempt"] for path in steady.folders for episode in RunFolder(path).episodes()
    ]
    assert attempts == [1] * 5
    assert breaks.outcomes["error"] == 3  # the first episode of each part
    again = run(more, tmp_path, resume=True)
    assert again.status.cells[1].outcomes["error"] == 3
    retried = run(more, tmp_path, resume=True, retry_errors=True)
    assert retried.complete


def test_another_sweep_is_not_mixed_in(tmp_path: Path) -> None:
    run(plan("steady", scenes="0"), tmp_path)
    with pytest.raises(TraceError, match="another part_episodes"):
        run(plan("steady", scenes="0", part=7), tmp_path, resume=True)


def test_mixed_runs_are_not_merged(tmp_path: Path) -> None:
    result = run(plan("steady", "breaks", scenes="1", seeds=(0, 1)), tmp_path)
    first, seed, policy, _ = (cell.folders[0] for cell in result.status.cells)
    with pytest.raises(TraceError, match="another policy"):
        merge_runs([first, policy], tmp_path / "a")
    with pytest.raises(TraceError, match="another seed"):
        merge_runs([first, seed], tmp_path / "b")
    with pytest.raises(TraceError, match="both hold scene 1"):
        merge_runs([first, first], tmp_path / "c")
    assert not any((tmp_path / name).exists() for name in "abc")


def test_status_reads_a_sweep_that_runs_and_a_killed_parent_leaves_no_process(
    tmp_path: Path,
) -> None:
    text = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from test_fleet import command, plan\n"
        "from monitor.study.sweep import run_fleet\n"
        "run_fleet(plan('steady', 'sleeps', scenes='0'), Path(sys.argv[1]), jobs=2, "
        "command=command)"
    )
    parent = subprocess.Popen([sys.executable, "-c", text, str(tmp_path), str(FAKE.parent)])
    pid_file = tmp_path / "sleeps" / "table" / "seed-0" / "part-000" / "pid"
    try:
        _wait_for(lambda: pid_file.exists() and pid_file.read_text() != "")
        _wait_for(lambda: read_status(plan("steady", "sleeps", scenes="0"), tmp_path).finished == 1)
        child = int(pid_file.read_text())
        os.kill(child, 0)
    finally:
        parent.kill()
        parent.wait()
    _wait_for(lambda: not _alive(child))


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_ctrl_c_stops_the_parts_and_keeps_what_is_finished(tmp_path: Path) -> None:
    seen: list[int] = []

    def watch(status: object) -> None:
        path = tmp_path / "sleeps" / "table" / "seed-0" / "part-000" / "pid"
        if path.exists() and path.read_text():
            seen.append(int(path.read_text()))
            raise KeyboardInterrupt

    result = run_fleet(
        plan("sleeps", "steady", scenes="0"), tmp_path, jobs=2, command=command, watch=watch
    )
    assert result.interrupted
    assert not result.complete
    assert not _alive(seen[0])


def _wait_for(condition: object, limit_s: float = 30.0) -> None:
    assert callable(condition)
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.mark.parametrize("scenes", ["2:5", "0:3", "1,0,2,3,4"])
def test_a_resumed_sweep_may_only_add_scenes_at_the_end(tmp_path: Path, scenes: str) -> None:
    run(plan("steady"), tmp_path)
    noted = (tmp_path / "plan.json").read_bytes()
    with pytest.raises(TraceError, match="may only append scenes"):
        run(plan("steady", scenes=scenes), tmp_path, resume=True)
    assert (tmp_path / "plan.json").read_bytes() == noted
    assert run(plan("steady", scenes="0:6"), tmp_path, resume=True).status.finished == 6
