"""What holds for every registered metric and fault, whatever it computes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from monitor import MonitorConfig, Step
from monitor.catalogue import CATALOGUE, METRIC_STAGES
from monitor.engine import Engine, passes
from monitor.faults.registry import FAULT_STAGES, FAULTS
from monitor.stage import FaultStage, MetricInfo, Setup, StepRow

SHORT = {
    "stall_steps": 2,
    "blind_steps": 2,
    "frozen_steps": 2,
    "gripper_steps": 2,
    "late_steps": 2,
}
SETUP = Setup(
    config=MonitorConfig.model_validate({"faults": SHORT}),
    action_low=np.full(7, -1.0),
    action_high=np.full(7, 1.0),
)
OF_STAGES = [info for stage in METRIC_STAGES for info in stage.info]
KEEPING = [one for one in FAULT_STAGES if "unused" not in one.state.__annotations__]
"""Faults over several steps; the others judge each step by itself."""


def rows(seed: int, count: int, *, known: float = 1.0) -> Iterator[np.ndarray]:
    """Rows of an arm that moves, rests, closes its gripper and now and then succeeds."""
    rng = np.random.default_rng(seed)
    record = Engine(SETUP, 1).run.rows
    for t in range(count):
        rests = t // 12 % 2 == 1
        record["action"][0, :7] = rng.uniform(-1.0, 1.0, 7) * (0.0 if rests else 2.0)
        record["action"][0, 6] = 1.0 if t % 40 < 20 else -1.0
        if not rests:
            record["position"] = rng.normal(size=3) * 0.1
        q = rng.normal(size=4)
        record["orientation"] = q / np.linalg.norm(q)
        record["gripper"], record["goal_distance"] = 0.5, abs(rng.normal()) * 0.3
        record["success"], record["latency_s"] = float(t in (30, 31)), 0.1 if rests else 0.4
        record["alpha"], record["action_mass"] = rng.uniform(size=2)
        record["tokens_outside"] = rng.integers(0, 2)
        record["logits_id"] = t // 8
        record["image_id"] = t if rests else t // 6
        record["image_std"] = rng.uniform(0.0, 5.0)
        flat = record.view(np.float64).reshape(-1).copy()
        if rng.random() > known:
            flat[:] = missing()
        yield flat


def missing() -> np.ndarray:
    flat = np.full(Engine(SETUP, 1).run.rows.dtype.itemsize // 8, np.nan)
    flat[7] = 0.0  # the padding of the action
    return flat


def run(engine: Engine, stream: Iterator[np.ndarray]) -> np.ndarray:
    return np.array([engine.run.update_one(row.tolist()) for row in stream])


@pytest.fixture(autouse=True)
def _plain(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "compiled" not in request.node.name:
        monkeypatch.setattr(passes, "usable", lambda: False)


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    """Outputs of one engine over a stream in which nothing is missing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "usable", lambda: False)
        return run(Engine(SETUP, 1), rows(0, 80))


def column(info: MetricInfo) -> int:
    engine = Engine(SETUP, 1)
    return engine.metric_columns[engine.ids.index(info.id)]


@pytest.mark.parametrize("info", CATALOGUE.values(), ids=lambda info: info.id)
def test_what_a_metric_says_of_itself_is_whole(info: MetricInfo) -> None:
    assert info.meaning
    assert info.unit
    assert info.source
    assert info.needs
    assert set(info.needs) <= set(Step.__struct_fields__)
    assert CATALOGUE[info.id] is info
    assert sum(info.id.lower() == name.lower() for name in CATALOGUE) == 1


@pytest.mark.parametrize("info", OF_STAGES, ids=lambda info: info.id)
def test_a_metric_keeps_its_warmup_and_its_range(info: MetricInfo, table: np.ndarray) -> None:
    values = table[:, column(info)]
    assert np.isnan(values[: info.warmup - 1]).all()
    known = values[~np.isnan(values)]
    assert len(known) > 40
    assert np.isfinite(known).all()
    assert info.low is None or known.min() >= info.low
    assert info.high is None or known.max() <= info.high
    assert known.min() < known.max(), "a metric that is a constant measures nothing"


@pytest.mark.parametrize("info", FAULTS.values(), ids=lambda info: info.code)
def test_what_a_fault_says_of_itself_is_whole(info: Any) -> None:
    assert info.meaning
    assert info.field in {"", *Step.__struct_fields__}
    assert info.response in {"ignore", "alert", "recover", "halt"}


@pytest.mark.parametrize("stage", FAULT_STAGES, ids=lambda stage: stage.name)
def test_a_fault_comes_and_goes_on_the_stream(stage: FaultStage, table: np.ndarray) -> None:
    engine = Engine(SETUP, 1)
    found = table[:, engine.column(stage.column)]
    assert (found == 0.0).any()
    assert (found > 0.0).any()


@pytest.mark.parametrize("stage", KEEPING, ids=lambda stage: stage.name)
def test_missing_input_never_clears_a_fault(stage: FaultStage) -> None:
    engine = Engine(SETUP, 1)
    at = engine.column(stage.column)
    for row in rows(0, 80):
        found = engine.run.update_one(row.tolist())[at]
        if found > 0.0:
            break
    assert found > 0.0
    for _ in range(20):
        assert engine.run.update_one(missing().tolist())[at] >= found


def test_reset_is_as_new_and_memory_stays_bounded() -> None:
    engine, new = Engine(SETUP, 1), Engine(SETUP, 1)
    run(engine, rows(1, 60, known=0.8))
    size = len(pickle.dumps(engine))
    run(engine, rows(2, 200, known=0.8))
    assert len(pickle.dumps(engine)) == size
    engine.run.reset()
    np.testing.assert_array_equal(run(engine, rows(3, 60)), run(new, rows(3, 60)))


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_continue_identically(twin: Any) -> None:
    engine = Engine(SETUP, 1)
    run(engine, rows(4, 50, known=0.8))
    other = twin(engine)
    expected = run(engine, rows(5, 50, known=0.8))
    np.testing.assert_array_equal(run(other, rows(5, 50, known=0.8)), expected)


def test_a_batch_equals_its_robots_and_a_reset_of_one_leaves_the_others() -> None:
    batch = Engine(SETUP, 3)
    alone = [Engine(SETUP, 1) for _ in range(3)]
    for t, given in enumerate(zip(*[rows(seed, 60, known=0.9) for seed in range(3)], strict=True)):
        if t == 30:
            mask = np.array([False, True, False])
            batch.run.reset(mask)
            alone[1].run.reset()
        batch.run.rows.view(np.float64).reshape(3, -1)[:] = given
        found = batch.run.update()
        for i, row in enumerate(given):
            np.testing.assert_array_equal(found[i], alone[i].run.update_one(row.tolist()))


def test_compiled_gives_the_bits_of_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = run(Engine(SETUP, 1), rows(6, 120, known=0.9))
    monkeypatch.setattr(passes, "usable", lambda: False)
    np.testing.assert_array_equal(compiled, run(Engine(SETUP, 1), rows(6, 120, known=0.9)))


def test_the_row_of_a_step_has_the_order_of_its_declaration() -> None:
    from monitor import Evidence
    from monitor.pipeline import row_of

    given = Evidence(
        tcp_position=(1.0, 2.0, 3.0), tcp_quaternion=(4.0, 5.0, 6.0, 7.0), gripper=8.0,
        goal_distance=9.0, success=True, latency_s=11.0, logits_id=15, image_id=16,
        image_std=17.0, signals={"alpha": 12.0, "action_mass": 13.0, "tokens_outside": 14.0},
    )  # fmt: skip
    engine = Engine(SETUP, 1)
    engine.run.rows.view(np.float64).reshape(-1)[:] = row_of(given, (0.5,) * 8)
    record = engine.run.rows[0]
    assert [one.name for one in fields(StepRow)] == list(engine.run.rows.dtype.names)
    named = {name: record[name].tolist() for name in engine.run.rows.dtype.names}
    assert named == {
        "action": [0.5] * 8, "position": [1.0, 2.0, 3.0], "orientation": [4.0, 5.0, 6.0, 7.0],
        "gripper": 8.0, "goal_distance": 9.0, "success": 1.0, "latency_s": 11.0, "alpha": 12.0,
        "action_mass": 13.0, "tokens_outside": 14.0, "logits_id": 15.0, "image_id": 16.0,
        "image_std": 17.0,
    }  # fmt: skip
