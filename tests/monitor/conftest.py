"""Streams of steps and monitors for the tests of the core."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor import Calibration, Monitor, MonitorConfig, Step
from monitor.catalogue import CATALOGUE
from monitor.engine import passes
from monitor.reading.logits import digest as logits_digest
from monitor.stage.compiled import usable

LOW = np.array([-0.05] * 3 + [-0.25] * 3 + [-1.0])
HIGH = -LOW
EXTRA = tuple(name for name, info in CATALOGUE.items() if info.needs == ("extra",))

PLUGIN_CODE = """
from monitor.faults import fault

class Loudness:
    ids = ("LOUD", "LOUD-bad")
    def __init__(self, setting):
        self.dim = len(setting.action_low)
    def measure(self, step):
        if step.hidden is None:
            raise KeyError("no hidden")
        return {"LOUD": float(abs(step.hidden).max()), "LOUD-bad": float("nan")}
    def reset(self):
        pass

class TooLoud:
    def __init__(self, setting):
        pass
    def check(self, scene):
        loud = scene.metrics["LOUD"]
        if loud == 4:
            raise ZeroDivisionError("four")
        return [fault("TOO_LOUD", scene, "shouting")] if loud and loud > 1 else []
    def reset(self):
        pass
"""
PLUGIN_NAMES = """[vlawatch.metrics]
loud = loudness:Loudness
[vlawatch.faults]
loud = loudness:TooLoud
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package as pip would lay it out, on the path."""
    (tmp_path / "loudness.py").write_text(PLUGIN_CODE, encoding="utf-8")
    info = tmp_path / "loudness-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loudness\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(PLUGIN_NAMES, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "loudness", raising=False)


@pytest.fixture
def make_monitor() -> Callable[..., Monitor]:
    """Builder of monitors over a 7-D action space; keywords are sections of the configuration."""

    def make(calibration: Calibration | None = None, **sections: Any) -> Monitor:
        config = MonitorConfig.model_validate(sections)
        return Monitor(config, action_low=LOW, action_high=HIGH, calibration=calibration)

    return make


@pytest.fixture
def random_step() -> Callable[..., Step]:
    """Builder of steps that hold every field, wild but well formed."""

    def make(rng: np.random.Generator, **changes: Any) -> Step:
        q = rng.normal(size=4)
        logits = rng.normal(size=(7, 64)).astype(np.float32) * rng.choice([0.3, 3.0, 12.0])
        given: dict[str, Any] = {
            "action": rng.uniform(LOW, HIGH),
            "token_logits": logits,
            "token_ids": logits.argmax(axis=1),
            "action_token_range": (16, 48),
            "tcp_position": rng.normal(size=3) * 0.1,
            "tcp_quaternion": q / np.linalg.norm(q),
            "goal_distance": float(rng.uniform(0.0, 0.5)),
            "samples": rng.uniform(LOW, HIGH, size=(3, 7)),
            "chunk": rng.uniform(LOW, HIGH, size=(4, 7)),
            "image": rng.integers(0, 256, size=(8, 8, 3), dtype=np.uint8),
            "gripper": float(rng.uniform()),
            "latency_s": 0.05,
            "extra": {name: float(rng.uniform()) for name in EXTRA},
        }
        return Step(**{**given, **changes})

    return make


@pytest.fixture
def calm_stream() -> Callable[..., list[Step]]:
    """Builder of a confident arm that closes in on its goal; ``change(t)`` overrides fields."""

    def make(
        count: int,
        change: Callable[[int], dict[str, Any]] | None = None,
        seed: int = 0,
        start: float = 0.4,
    ) -> list[Step]:
        rng = np.random.default_rng(seed)
        place, distance, steps = np.array([0.3, 0.0, 0.2]), start, []
        for t in range(count):
            logits = rng.normal(size=(7, 256)).astype(np.float32)
            logits[np.arange(7), rng.integers(0, 256, 7)] += 16.0
            delta = np.array([0.02, 0.005, -0.01]) * (1.0 + 0.05 * rng.normal(size=3))
            place = place + delta
            distance = max(distance - 0.012 * (1.0 + 0.05 * rng.normal()), 0.0)
            given: dict[str, Any] = {
                "action": np.array([*delta, 0.0, 0.0, 0.0, 1.0]),
                "token_logits": logits,
                "token_ids": logits.argmax(axis=1),
                "tcp_position": place,
                "tcp_quaternion": (1.0, 0.0, 0.0, 0.0),
                "goal_distance": distance,
                "gripper": 1.0,
            }
            steps.append(Step(**{**given, **(change(t) if change else {})}))
        return steps

    return make


def write_rated_run(out: Path, episodes: int = 40, *, contacts: bool = True) -> Path:
    """A run of episodes that differ in all that a grade looks at, and made-up scores of it.

    ``scores.csv`` in its folder holds three raters: the truth with noise, kind and strict.
    """
    from monitor.trace import RunWriter

    rng = np.random.default_rng(3)
    links = {"name": "toy", "links": "^arm", "fingers": "tip"}
    header = {"env": {"name": "toy", "control_dt_s": 0.2}, "robot": links}
    lines = ["rater,episode,score"]
    with RunWriter(out, header=header) as writer:
        for number in range(episodes):
            shake, wait, hit = rng.random(), int(rng.integers(0, 8)), rng.random() < 0.2
            solved = int(rng.integers(10, 28)) if rng.random() > 0.2 else None
            for step in range(30):
                touched = [["arm2", "table", 120.0]] if hit and step == 3 else []
                writer.write_step({
                    "episode": number, "attempt": 1, "step": step, "sent": [0.0], "score": None,
                    "joint_positions": (0.02 * step + 0.05 * shake * rng.normal(size=2)).tolist(),
                    "tcp_position": [0.06 * max(0, step - wait), 0.0, 0.0],
                    "world": {"contacts": touched} if contacts else {},
                })  # fmt: skip
            writer.write_episode({
                "episode": number, "attempt": 1, "scene": 100 + number, "steps": 30, "faults": {},
                "outcome": "failure" if solved is None else "success", "first_success": solved,
                "success_at_end": solved is not None, "wall_s": 1.0,
                "instruction": "stir, then rest",
            })  # fmt: skip
            good = 0.7 * (1 - shake) + 0.3 * (0.0 if solved is None else 1 - solved / 30)
            good /= (2 if solved is None else 1) * (2 if hit and contacts else 1)
            for rater, kind in (("ada", 0.0), ("bo", 1.0), ("cy", -1.0)):
                told = round(float(np.clip(1 + 9 * good + kind + 0.7 * rng.normal(), 1, 10)))
                lines.append(f"{rater},{number},{told}")
    (out / "scores.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return out


@pytest.fixture(scope="session")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 episodes and their scores; for reading only."""
    return write_rated_run(tmp_path_factory.mktemp("rated") / "run")


@pytest.fixture(name="write_rated_run")
def _write_rated_run() -> Callable[..., Path]:
    return write_rated_run


@pytest.fixture(params=["compiled", "as it stands"])
def numba_or_not(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What numba compiles, and the same without it."""
    if request.param == "compiled":
        if not usable():
            pytest.skip("needs numba, the extra fast")
        return
    monkeypatch.setattr(logits_digest, "load_kernel", lambda: None)
    monkeypatch.setattr(passes, "usable", lambda: False)
