"""A batch is read as its environments are one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from monitor import Step
from monitor.per_robot import alone
from monitor.reading.batch import Batch, BatchReader
from monitor.reading.step import StepReader
from monitor.vector import VectorMonitor

pytestmark = pytest.mark.usefixtures("numba_or_not")
"""Each with what is compiled and without."""

N, DIM, V = 6, 7, 40
FIELDS = {
    "action": "action",
    "position": "tcp_position",
    "orientation": "tcp_quaternion",
    "goal_distance": "goal_distance",
    "gripper": "gripper",
    "latency_s": "latency_s",
}


def reader(n: int = N) -> BatchReader:
    return BatchReader(-np.ones(DIM), np.ones(DIM), n)


def batch(span: tuple[int, int] | None = None) -> Step:
    rng = np.random.default_rng(0)
    orientation = rng.normal(size=(N, 4)) * 0.1 + [1.0, 0.0, 0.0, 0.0]
    return Step(
        action=rng.uniform(-1.0, 1.0, (N, DIM)),
        tcp_position=rng.normal(size=(N, 3)),
        tcp_quaternion=orientation / np.linalg.norm(orientation, axis=1, keepdims=True),
        goal_distance=rng.uniform(size=N),
        gripper=rng.uniform(size=N),
        latency_s=rng.uniform(size=N),
        token_logits=rng.normal(size=(N, DIM, V)).astype(np.float32),
        token_ids=rng.integers(0, V, (N, DIM)),
        action_token_range=span,
    )


def seen(step: Step) -> Batch:
    return reader().read(step)


def break_some(step: Step) -> None:
    """Break another thing in every environment but the last."""
    step.action[0, 3] = step.tcp_position[0, 1] = np.nan
    step.token_ids[0, 2] = V
    step.tcp_position[1, 0], step.tcp_quaternion[1] = 2e4, 1e200
    step.goal_distance[1] = -1.0
    step.token_logits[2, 4, 5] = np.nan
    step.gripper[2] = np.inf
    step.token_logits[3, 0, 8:30] = -np.inf
    step.goal_distance[3], step.action[3, :2] = np.nan, (np.inf, -np.inf)
    step.tcp_quaternion[4], step.action[4] = 0.0, 1e308


@pytest.mark.parametrize("span", [None, (0, V), (8, 30), (-1, 3)])
@pytest.mark.parametrize("broken", [False, True])
def test_a_batch_is_read_as_its_environments_are(
    span: tuple[int, int] | None, broken: bool
) -> None:
    step = batch(span)
    if broken:
        break_some(step)
    whole = seen(step)
    codes: set[tuple[str, int]] = set()
    for i in range(N):
        one = StepReader(-np.ones(DIM), np.ones(DIM)).read(alone(step, i, N), 0)
        codes |= {(fault.code, i) for fault in one.problems}
        for name, field in FIELDS.items():
            value, row = getattr(one, field), getattr(whole, name)[i]
            assert np.isnan(row).all() if value is None else np.allclose(row, value, rtol=1e-15)
        for name, column in whole.values.items():
            known = one.signals.get(name)
            assert column[i] == known or (np.isnan(column[i]) and known is None)
        assert set(one.signals) <= set(whole.values)
        assert whole.logits_id[i] == one.logits_id or one.logits_id is None
    found = {(code, i) for code, where in whole.faults.items() for i in range(N) if where[i]}
    assert found == codes


def test_a_fingerprint_for_each_environment() -> None:
    step = batch()
    first = seen(step).logits_id
    assert len(set(first.tolist())) == N
    step.token_logits[1, 2, 3] += 1e-3
    step.token_logits[4, 2, 3] = np.nan
    then = seen(step).logits_id
    assert (then == first).tolist() == [True, False, True, True, False, True]
    assert np.isnan(then).tolist() == [False, False, False, False, True, False]
    assert np.isnan(seen(replace(step, token_logits=None)).logits_id).all()


@pytest.mark.parametrize("form", [torch.from_numpy, np.asfortranarray, np.ndarray.tolist])
@pytest.mark.parametrize("name", ["action", "tcp_quaternion", "token_logits", "token_ids"])
def test_the_form_of_an_array_does_not_matter(name: str, form: Any) -> None:
    step = batch((8, 30))
    other, expected = seen(replace(step, **{name: form(getattr(step, name))})), seen(step)
    assert other.faults == {}
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(other, field), getattr(expected, field))
    for key, column in expected.values.items():
        np.testing.assert_allclose(other.values[key], column, atol=2e-6)


@pytest.mark.parametrize(
    "ids", [np.full((N, DIM), 0.5), np.full((N, DIM), 1e19), np.zeros((N, 3)), "ids"]
)
def test_ids_that_are_not_classes_leave_alpha_unknown(ids: Any) -> None:
    read_so = seen(replace(batch(), token_ids=ids))
    assert read_so.faults["TOKEN_IDS"].all()
    assert np.isnan(read_so.values["alpha"]).all()
    np.testing.assert_array_equal(read_so.values["TB-E"], seen(batch()).values["TB-E"])


def test_what_is_read_shares_no_memory_with_what_was_given() -> None:
    step, one_reader = batch((8, 30)), reader()
    first = one_reader.read(step)
    arrays = [getattr(first, name) for name in (*FIELDS, "logits_id")]
    arrays += first.values.values()
    before = [one.copy() for one in arrays]
    for name in ("action", "tcp_position", "tcp_quaternion", "goal_distance", "token_logits"):
        getattr(step, name)[...] = 0.25
    second = one_reader.read(step)
    for one, was in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(one, was)
    for one in arrays:
        one[...] = -7.0
    assert not (second.action == -7.0).any()
    assert not any((one == -7.0).any() for one in second.values.values())


@pytest.mark.parametrize("given", [True, [[True]], [True] * 3, "yes"])
def test_a_misshapen_verdict_is_reported(given: Any) -> None:
    monitor = VectorMonitor(num_envs=2, action_low=[-1.0], action_high=[1.0])
    decision = monitor.update(Step(action=np.zeros((2, 1)), success=given))
    assert decision.faults["SUCCESS_SHAPE"].all()


def test_one_environment_may_give_its_verdict_bare_and_unreadable_ones_are_faults() -> None:
    one = VectorMonitor(num_envs=1, action_low=[-1.0], action_high=[1.0])
    assert not one.update(Step(action=np.zeros((1, 1)), success=True)).faults
    two = VectorMonitor(num_envs=2, action_low=[-1.0], action_high=[1.0])
    decode: Any = [True, True, False]
    decision = two.update(
        Step(action=np.zeros((2, 1)), latency_s=np.array([0.1, -0.1]), decode_ok=decode)
    )
    assert decision.faults["MALFORMED_TOKENS"].all()
    assert decision.faults["LATENCY_VALUE_RANGE"].tolist() == [False, True]
