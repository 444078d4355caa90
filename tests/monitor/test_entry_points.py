"""A metric, a fault detector and a sink of another package, built and installed as users do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("hatchling")
pytest.importorskip("typer")

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "somebodys-watch"
version = "1.2.3"

[project.entry-points."vlawatch.metrics"]
reach = "somebodys_watch:Reach"

[project.entry-points."vlawatch.faults"]
too-far = "somebodys_watch:TooFar"

[project.entry-points."vlawatch.sinks"]
lines = "somebodys_watch:Lines"
broken = "somebodys_watch:Broken"
"""

CODE = '''
from monitor.faults import fault


class Reach:
    """How far the tool is from the base, metres."""

    ids = ("REACH",)

    def __init__(self, setting):
        self.dim = len(setting.action_low)

    def measure(self, step):
        tool = step.tcp_position
        return {"REACH": None if tool is None else float(sum(x * x for x in tool)) ** 0.5}

    def reset(self):
        pass


class TooFar:
    def __init__(self, setting):
        pass

    def check(self, scene):
        reach = scene.metrics["REACH"]
        return [fault("TOO_FAR", scene, f"{reach:.2f} m")] if reach and reach > 0.35 else []

    def reset(self):
        pass


class Lines:
    """One line a step, and one at the end."""

    def __init__(self, folder):
        self.path = folder / "somebody.txt"
        self.lines = []

    def on_start(self, start):
        self.lines.append(f"start {start.instruction}")

    def on_step(self, record):
        codes = ",".join(fault.code for fault in record.decision.faults)
        self.lines.append(f"{record.step} {record.decision.metrics['REACH']!r} {codes}")

    def on_end(self, result):
        self.lines.append(f"end {result.outcome}")

    def close(self):
        self.path.write_text("\\n".join(self.lines))


class Broken(Lines):
    def on_step(self, record):
        raise RuntimeError("disk is full")

    def close(self):
        raise AssertionError("it was dropped")
'''

# A run whose environment needs no simulator; everything else is the command line's own.
RUN = """
import sys
import gymnasium
import numpy as np
from monitor.cli import session
from monitor.cli.main import main

class Still(gymnasium.Env):
    control_dt_s = 0.2
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (7,))

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return self.seen()

    def step(self, action):
        self.steps += 1
        obs, info = self.seen()
        return obs, 0.0, False, self.steps >= 4, info

    def seen(self):
        tool = np.array([0.3 + 0.03 * self.steps, 0.0, 0.0])
        image = np.random.default_rng(self.steps).integers(0, 256, (8, 8, 3)).astype(np.uint8)
        return {"image": image, "tcp_position": tool}, {"instruction": "wait", "success": True}

session.open_env = lambda *_: Still()
sys.exit(main(sys.argv[1:]))
"""

MONITOR = """
metrics: {plugins: [reach]}
faults: {plugins: [too-far], respond: {TOO_FAR: alert}}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip has put the package."""
    source = tmp_path_factory.mktemp("source")
    (source / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (source / "somebodys_watch.py").write_text(CODE, encoding="utf-8")
    target = tmp_path_factory.mktemp("site")
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--target"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, str(target), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (target / "somebodys_watch-1.2.3.dist-info" / "entry_points.txt").exists()
    return target


def vlawatch(
    site: Path, folder: Path, *sinks: str, scenes: str = "0:1"
) -> subprocess.CompletedProcess[str]:
    (folder / "monitor.yaml").write_text(MONITOR, encoding="utf-8")
    chosen = [word for sink in sinks for word in ("--sink", sink)]
    arguments = ["run", "--policy", "hold", "--scenes", scenes, "--out", str(folder / "run")]
    arguments += ["--monitor", str(folder / "monitor.yaml"), "--no-live", *chosen]
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(site)!r})\n{RUN}", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
    )


def test_all_three_at_work(site: Path, tmp_path: Path) -> None:
    done = vlawatch(site, tmp_path, "lines")
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "run" / "steps.jsonl").read_text(encoding="utf-8")
    steps = [json.loads(line) for line in written.splitlines()]
    reach = [np.linalg.norm([0.3 + 0.03 * index, 0.0, 0.0]) for index in range(4)]
    assert [step["metrics"]["REACH"] for step in steps] == pytest.approx(reach)
    assert ["TOO_FAR" in step["faults"] for step in steps] == [False, False, True, True]
    lines = (tmp_path / "run" / "somebody.txt").read_text().splitlines()
    assert lines[0] == "start wait"
    assert lines[-1] == "end success"
    told = [line.split(" ") for line in lines[1:-1]]
    assert [float(words[1]) for words in told] == [step["metrics"]["REACH"] for step in steps]
    assert "TOO_FAR" in told[-1][2]


def test_a_sink_that_fails_does_not_cost_the_run(site: Path, tmp_path: Path) -> None:
    done = vlawatch(site, tmp_path, "broken", "lines", scenes="0:2")
    assert done.returncode == 0, done.stderr
    text = "sink broken failed at step 0: RuntimeError: disk is full; the run goes on without it"
    assert done.stderr.count(text) == 1
    assert len((tmp_path / "run" / "episodes.jsonl").read_text().splitlines()) == 2
    assert (tmp_path / "run" / "somebody.txt").exists()


def test_an_unknown_sink(site: Path, tmp_path: Path) -> None:
    done = vlawatch(site, tmp_path, "line")
    assert done.returncode == 2
    assert "unknown sink 'line'; did you mean 'lines'?" in done.stderr
    assert not (tmp_path / "run").exists()
