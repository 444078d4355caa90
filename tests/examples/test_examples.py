"""Each kind of extension: one file of ``examples/``, named as ``module:attribute``, in a run."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict, replace

from envs import make_env
from monitor import ConfigError, Mode, Monitor, MonitorConfig, Step, VectorMonitor
from monitor.cli.main import main
from monitor.rollout import StepRecord, run_episode
from policies import load_policy

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
HIGH = np.array([0.05] * 3 + [0.25] * 3 + [1.0])


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


class Records:
    def __init__(self) -> None:
        self.steps: list[StepRecord] = []

    def on_start(self, start: Any) -> None: ...

    def on_step(self, record: StepRecord) -> None:
        self.steps.append(record)

    def on_end(self, result: Any) -> None: ...


def monitor_of(**sections: Any) -> Monitor:
    config = MonitorConfig.model_validate(sections)
    return Monitor(config, action_low=-HIGH, action_high=HIGH)


def run(monitor: Monitor) -> list[StepRecord]:
    """One episode of the example policy in the example environment."""
    records = Records()
    env, policy = make_env("reach_env:ReachEnv"), load_policy("down_policy:DownPolicy")
    result = run_episode(env, policy, monitor, [records])
    assert result.outcome in {"success", "failure", "halted"}, result.message
    return records.steps


def steps(count: int, change: Callable[[int], dict[str, Any]] | None = None) -> list[Step]:
    """Steps of an arm that moves on, with logits."""
    rng = np.random.default_rng(3)
    made = []
    for t in range(count):
        logits = rng.normal(size=(7, 32)).astype(np.float32) * rng.choice([0.5, 4.0])
        fields: dict[str, Any] = {
            "action": rng.uniform(-HIGH, HIGH),
            "tcp_position": np.array([0.3, 0.001 * t, 0.2]),
            "token_logits": logits,
        }
        made.append(Step(**{**fields, **(change(t) if change else {})}))
    return made


def assert_batch_equals_single(sections: dict[str, Any], stream: list[Step]) -> None:
    """Two robots, the second one step behind, each as in a monitor of its own."""
    config = MonitorConfig.model_validate(sections)
    vector = VectorMonitor(config, num_envs=2, action_low=-HIGH, action_high=HIGH)
    singles = [monitor_of(**sections) for _ in range(2)]
    for pair in zip(stream[1:], stream[:-1], strict=True):
        fields: dict[str, Any] = {
            name: np.stack([getattr(one, name) for one in pair])
            for name, value in asdict(pair[0]).items()
            if isinstance(value, np.ndarray)
        }
        both = vector.update(Step(**fields))
        for i, (single, step) in enumerate(zip(singles, pair, strict=True)):
            alone = single.update(step)
            for name, value in alone.metrics.items():
                seen = both.metrics[name][i]
                assert (None if np.isnan(seen) else seen) == value, name
            assert (None if np.isnan(both.score[i]) else both.score[i]) == alone.score
            assert both.modes[i] is alone.mode
            codes = {code for code, where in both.faults.items() if where[i]}
            assert codes == {fault.code for fault in alone.faults}
            if alone.action is not None:
                assert both.action[i].tolist() == alone.action.tolist()


def test_a_metric(capsys: pytest.CaptureFixture[str]) -> None:
    sections = {"metrics": {"plugins": ["action_effort:METRIC"]}}
    records = run(monitor_of(**sections))
    values = [one.decision.metrics["EFFORT"] for one in records]
    assert values[:7] == [None] * 7
    assert values[7] == pytest.approx(0.01)
    assert_batch_equals_single(sections, steps(20))
    with pytest.raises(ConfigError, match="did you mean 'EFFORT'"):
        monitor_of(**sections, score={"signals": {"EFORT": 1.0}})
    assert main(["metrics", "action_effort:METRIC", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["EFFORT"]["unit"] == "m"


def test_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    sections = {"faults": {"plugins": ["pose_jump:FAULT"], "respond": {"POSE_JUMP": "halt"}}}
    assert not any(one.decision.faults for one in run(monitor_of(**sections)))
    far = steps(12, lambda t: {"tcp_position": np.array([0.9, 0, 0])} if t == 5 else {})
    monitor = monitor_of(**sections)
    decisions = [monitor.update(step) for step in far]
    assert [fault.code for fault in decisions[5].faults] == ["POSE_JUMP"]
    assert "jumped 0.6" in decisions[5].faults[0].message
    assert decisions[5].mode is Mode.HALT
    assert_batch_equals_single(sections, far)
    assert main(["faults", "pose_jump:FAULT", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["POSE_JUMP"]["response"] == "alert"


def test_a_scorer() -> None:
    sections = {"score": {"scorer": "mean_entropy:MeanEntropy"}}
    records = run(monitor_of(**sections))
    entropies = [one.decision.metrics["TB-E"] for one in records]
    known = [x for x in entropies if x is not None]
    assert records[-1].decision.score == pytest.approx(np.mean(known[: len(records)]))
    assert_batch_equals_single({**sections, "controller": {"tau_halt": 2.0}}, steps(20))


def test_a_recovery() -> None:
    sections = {
        "recovery": {"behavior": "lift:Lift"},
        "controller": {"tau_recover": 0.0, "tau_halt": 9.0, "budget": 9},
    }
    records = run(monitor_of(**sections))
    lifted = [one.decision.action for one in records if one.decision.mode is Mode.RECOVER]
    assert lifted
    assert all(action is not None and action[2] == 0.01 for action in lifted)
    assert_batch_equals_single(sections, steps(20))


def test_a_policy_in_an_environment_with_a_sink(tmp_path: Path) -> None:
    out = tmp_path / "run"
    code = main(
        ["run", "--env", "reach_env:ReachEnv", "--policy", "down_policy:DownPolicy", "--scenes",
         "0:2", "--sink", "csv_sink:ScoreCsv", "--out", str(out), "--no-live", "--watch-only"]
    )  # fmt: skip
    assert code == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["episodes"] == summary["completed"] == 2
    with (out / "scores.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["episode"], row["step"]) for row in rows] == [
        (str(episode), str(step)) for episode in range(2) for step in range(20)
    ]
    assert {row["mode"] for row in rows} <= {"TASK", "RECOVER"}


@pytest.mark.parametrize("name", sorted(one.name for one in EXAMPLES.glob("*.py")))
def test_the_page_shows_the_file(name: str) -> None:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert f"```python\n{text}```" in PAGE


class Broken:
    """What raises as each kind of plugin."""

    ids = ("BROKEN",)
    signals = ("TB-E",)

    def __init__(self, *_: Any) -> None: ...

    def _fail(self, *_: Any) -> Any:
        message = "out of order"
        raise RuntimeError(message)

    measure = check = update = act = _fail

    def observe(self, *_: Any) -> None: ...

    def reset(self, *_: Any) -> None: ...

    def explain(self, _: int) -> dict[str, float]:
        return {}


@pytest.mark.parametrize(
    ("sections", "code"),
    [
        ({"metrics": {"plugins": [f"{__name__}:Broken"]}}, "METRIC_ERROR"),
        ({"faults": {"plugins": [f"{__name__}:Broken"]}}, "DETECTOR_ERROR"),
        ({"score": {"scorer": f"{__name__}:Broken"}}, "SCORER_ERROR"),
        (
            {
                "recovery": {"behavior": f"{__name__}:Broken"},
                "faults": {"respond": {"NONFINITE_LOGITS": "recover"}},
            },
            "RECOVERY_ERROR",
        ),
    ],
)
def test_a_plugin_that_raises_is_a_fault_in_the_same_words(
    sections: dict[str, Any], code: str
) -> None:
    monitor = monitor_of(**sections)
    step = replace(steps(1)[0], token_logits=np.full((7, 32), np.nan, np.float32))
    decision = monitor.update(step)
    (found,) = [fault for fault in decision.faults if fault.code == code]
    assert "raised RuntimeError('out of order')" in found.message
    assert (decision.mode is Mode.HALT) == (code == "RECOVERY_ERROR")
    vector = VectorMonitor(monitor.config, num_envs=1, action_low=-HIGH, action_high=HIGH)
    batch = vector.update(
        Step(
            action=np.asarray(step.action)[None],
            tcp_position=np.asarray(step.tcp_position)[None],
            token_logits=np.asarray(step.token_logits)[None],
        )
    )
    assert batch.faults[code].tolist() == [True]
    assert batch.modes == [decision.mode]
