"""The probe beside a robot: numpy against torch, what is missing or wrong, replay, vectors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor import ConfigError, Monitor, MonitorConfig, Step
from monitor.config import load_config
from monitor.metrics.probe_file import ProbeFile, ProbeHeader
from monitor.metrics.safe import SafeMetric, failure_curve
from monitor.records import Evidence
from monitor.vector import VectorMonitor

F, H, T = 12, 5, 6
LOW = [-1.0] * 7
Make = Callable[..., Monitor]


def make_probe(seed: int = 0, **header: Any) -> ProbeFile:
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> Any:
        return np.asarray(rng.normal(size=shape), dtype=np.float32)

    given = {"policy": "p", "env": "e", "features": F, "units": H, "horizon": T, "alpha": 0.1,
             "n_train": 4, "n_band": 19, "training": {"seed": 0.0}}  # fmt: skip
    return ProbeFile(
        header=ProbeHeader.model_validate({**given, **header}),
        weight_1=draw(H, F), bias_1=draw(H), weight_2=draw(H), bias_2=draw(),
        band=np.linspace(0.5, 3.0, T),
    )  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "probe.npz"
    make_probe().save(path)
    return str(path)


def rows(count: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=(count, F)).astype(np.float32)


def test_the_sum_is_that_of_a_torch_network() -> None:
    torch = pytest.importorskip("torch")
    probe, features = make_probe(), rows(40)
    net = torch.nn.Sequential(
        torch.nn.Linear(F, H), torch.nn.ReLU(), torch.nn.Linear(H, 1), torch.nn.Sigmoid()
    )
    with torch.no_grad():
        for at, name in ((0, "1"), (2, "2")):
            weight, bias = getattr(probe, f"weight_{name}"), getattr(probe, f"bias_{name}")
            net[at].weight.copy_(torch.from_numpy(np.atleast_2d(weight)))
            net[at].bias.copy_(torch.from_numpy(np.atleast_1d(bias)))
        expected = net(torch.from_numpy(features)).cumsum(dim=0)[:, 0].numpy()
    np.testing.assert_allclose(failure_curve(probe, features), expected, rtol=1e-5)


def test_it_runs_in_the_monitor_and_replays(make_monitor: Make, file: str) -> None:
    live, again = make_monitor(metrics={"safe": file, "peaks": ("SAFE",)}), make_monitor()
    features = rows(T + 2)
    curve = failure_curve(make_probe(), features)
    for t, row in enumerate(features):
        decision = live.update(Step(action=np.zeros(7), hidden=row))
        assert decision.metrics["SAFE"] == decision.metrics["SAFE_peak"] == curve[t]
        excess = curve[t] - np.linspace(0.5, 3.0, T)[t] if t < T else None
        assert decision.metrics["SAFE-excess"] == excess
        text = json.dumps(decision.evidence.to_json(), allow_nan=False)
        replayed = again.replay(Evidence.from_json(json.loads(text)))
        assert {**replayed.metrics, "SAFE_peak": curve[t]} == decision.metrics
    live.reset()
    assert live.update(Step(action=np.zeros(7), hidden=features[0])).metrics["SAFE"] == curve[0]


def test_a_step_without_features_is_unknown_and_does_not_count(
    make_monitor: Make, file: str
) -> None:
    monitor, features = make_monitor(metrics={"safe": file}), rows(2)
    values = [
        monitor.update(Step(action=np.zeros(7), hidden=hidden))
        for hidden in (features[0], None, features[1])
    ]
    metric = SafeMetric(make_probe())
    expected = [metric.measure(Step(hidden=row)) for row in features]
    assert [one.metrics["SAFE"] for one in values] == [
        expected[0]["SAFE"],
        None,
        expected[1]["SAFE"],
    ]
    assert values[2].metrics["SAFE-excess"] == expected[1]["SAFE-excess"]
    assert not any(fault.code == "METRIC_ERROR" for one in values for fault in one.faults)


@pytest.mark.parametrize(
    ("hidden", "says"),
    [
        (np.full(F, np.nan), "not finite"),
        (np.full(F, 1e300), "not finite"),
        (np.zeros(F + 1), r"\(13,\), the probe was trained on \(12,\)"),
        (np.zeros((2, F)), r"\(2, 12\)"),
        ("words", "str"),
    ],
)  # fmt: skip
def test_features_that_do_not_fit_are_a_fault_and_unknown(
    make_monitor: Make, file: str, hidden: Any, says: str
) -> None:
    monitor = make_monitor(metrics={"safe": file})
    decision = monitor.update(Step(action=np.zeros(7), hidden=hidden))
    (found,) = (one for one in decision.faults if one.code == "METRIC_ERROR")
    assert re.search(says, found.message)
    assert decision.metrics["SAFE"] is decision.metrics["SAFE-excess"] is None
    calm = monitor.update(Step(action=np.zeros(7), hidden=rows(1)[0]))
    assert calm.metrics["SAFE"] == failure_curve(make_probe(), rows(1))[0]


def test_any_float_type_and_torch_will_do(make_monitor: Make, file: str) -> None:
    torch = pytest.importorskip("torch")
    row = np.round(rows(1)[0] * 8) / 8
    given = (row, row.astype(np.float64), row.astype(np.float16), row.tolist(),
             torch.from_numpy(row).bfloat16())  # fmt: skip
    values = [
        make_monitor(metrics={"safe": file}).update(Step(hidden=one)).metrics["SAFE"]
        for one in given
    ]
    assert len(set(values)) == 1


def test_a_rule_makes_an_alarm_of_the_excess(make_monitor: Make, file: str) -> None:
    rule = {"name": "SAFE", "of": [{"metric": "SAFE-excess", "above": 0}], "respond": "recover"}
    monitor = make_monitor(metrics={"safe": file}, rules=[rule])
    features = rows(T)
    excess = failure_curve(make_probe(), features) - np.linspace(0.5, 3.0, T)
    began = [
        any(
            alert.code == "SAFE"
            for alert in monitor.update(Step(action=np.zeros(7), hidden=one)).alerts
        )
        for one in features
    ]
    assert began.index(True) == np.flatnonzero(excess > 0)[0]


def test_a_batch_of_robots_gets_what_each_would(file: str) -> None:
    config = MonitorConfig.model_validate({"metrics": {"safe": file}})
    n, rng = 3, np.random.default_rng(5)
    vector = VectorMonitor(config, num_envs=n, action_low=LOW, action_high=[1.0] * 7)
    singles = [Monitor(config, action_low=LOW, action_high=[1.0] * 7) for _ in range(n)]
    for t in range(T + 1):
        action, hidden = np.zeros((n, 7)), rng.normal(size=(n, F))
        hidden[1, 0] = np.nan if t == 2 else hidden[1, 0]
        many = vector.update(Step(action=action, hidden=hidden))
        for i, one in enumerate(singles):
            alone = one.update(Step(action=action[i], hidden=hidden[i]))
            for name in ("SAFE", "SAFE-excess"):
                value = alone.metrics[name]
                np.testing.assert_equal(many.metrics[name][i], np.nan if value is None else value)
            faulty = any(fault.code == "METRIC_ERROR" for fault in alone.faults)
            assert bool(many.faults.get("METRIC_ERROR", np.zeros(n))[i]) == faulty
        if t == 3:
            vector.reset([0])
            singles[0].reset()


def test_a_file_is_checked_when_it_is_read(tmp_path: Path, make_monitor: Make) -> None:
    path = tmp_path / "probe.npz"
    with pytest.raises(ConfigError, match="vlawatch safe"):
        make_monitor(metrics={"safe": str(path)})
    for content in (b"", b"words", b"PK\x03\x04"):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match="cannot read the probe"):
            ProbeFile.load(path)
    np.savez(path, header=np.array("{}"))
    with pytest.raises(ConfigError, match="policy: Field required"):
        ProbeFile.load(path)
    np.savez(path, header=np.array(make_probe().header.model_dump_json()))
    with pytest.raises(ConfigError, match="weight_1"):
        ProbeFile.load(path)
    with pytest.raises(ConfigError, match=r"weight_1 is \(5, 12\) float32, expected \(5, 13\)"):
        make_probe(features=13)
    probe = make_probe()
    probe.save(path)
    read = ProbeFile.load(path)
    assert read.header == probe.header
    assert np.array_equal(read.weight_1, probe.weight_1)
    assert not list(tmp_path.glob("*.part"))


def test_its_path_is_relative_to_the_configuration_and_not_in_the_scores_hash(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.yaml").write_text("metrics: {safe: probe.npz}\n", encoding="utf-8")
    config = load_config(tmp_path / "mine.yaml")
    assert config.metrics.safe == str(tmp_path / "probe.npz")
    assert config.score_hash() == MonitorConfig().score_hash()
