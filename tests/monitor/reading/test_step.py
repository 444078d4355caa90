"""What the quick ways of reading a step must have in common with the careful ones."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from monitor import Step
from monitor.reading.step import StepReader
from monitor.records import Evidence

pytestmark = pytest.mark.usefixtures("numba_or_not")
"""Each with what is compiled and without."""


def evidence_of(step: Step) -> Evidence:
    return StepReader(-np.ones(7), np.ones(7)).read(step, 3)


def codes(step: Step) -> list[str]:
    return [one.code for one in evidence_of(step).problems]


def good() -> Step:
    rng = np.random.default_rng(0)
    return Step(
        action=rng.uniform(-1.0, 1.0, 7),
        tcp_position=rng.normal(size=3),
        tcp_quaternion=np.array([0.6, 0.0, 0.8, 0.0]),
        goal_distance=0.25,
        gripper=0.5,
        latency_s=0.125,
        token_logits=rng.normal(size=(7, 40)).astype(np.float32),
        token_ids=rng.integers(0, 40, 7),
        action_token_range=(8, 30),
    )


ARRAYS = ("action", "tcp_position", "tcp_quaternion", "token_logits", "token_ids")
NUMBERS = ("goal_distance", "gripper", "latency_s")


def strided(array: np.ndarray) -> np.ndarray:
    return np.repeat(array, 2, axis=-1)[..., ::2]


def frozen(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.setflags(write=False)
    return array


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("form", [np.ndarray.tolist, torch.from_numpy, strided, frozen, copy.copy])
def test_the_form_of_an_array_does_not_matter(name: str, form: Callable[[Any], Any]) -> None:
    step = good()
    other = evidence_of(replace(step, **{name: form(getattr(step, name))}))
    expected = evidence_of(step)
    assert other.problems == ()
    for one in ("action", "tcp_position", "tcp_quaternion", "logits_id"):
        if not (one == "logits_id" and form is np.ndarray.tolist and name == "token_logits"):
            assert getattr(other, one) == getattr(expected, one)
    assert other.signals == pytest.approx(expected.signals, abs=2e-6)
    assert list(other.tokens) == list(expected.tokens)


@pytest.mark.parametrize("name", ["action", "tcp_position", "tcp_quaternion"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_, ">f8"])
def test_the_type_of_an_array_does_not_matter(name: str, dtype: Any) -> None:
    given: Any = np.array(getattr(good(), name)).round().astype(dtype)
    given[0] = 1
    if name == "tcp_quaternion":
        given[1:] = 0
    read = getattr(evidence_of(Step(**{name: given})), name)
    assert read == tuple(given.astype(np.float64).tolist())
    assert all(type(one) is float for one in read)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("form", [np.float32, np.float64, np.array, torch.tensor])
def test_the_form_of_a_number_does_not_matter(name: str, form: Callable[[float], Any]) -> None:
    read = getattr(evidence_of(Step(**{name: form(0.25)})), name)
    assert (read, type(read)) == (0.25, float)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"action": np.full(7, 1e308)}, []),  # their sum is not finite, they are
        ({"action": np.array([np.inf, -np.inf, 0, 0, 0, 0, 0])}, ["NONFINITE_ACTION"]),
        ({"action": np.full(7, np.nan)}, ["NONFINITE_ACTION"]),
        ({"action": np.zeros(6)}, ["ACTION_SHAPE"]),
        ({"action": np.zeros((7, 1))}, ["ACTION_SHAPE"]),
        ({"tcp_position": np.array([0.0, -1.1e4, 0.0])}, ["POSE_RANGE"]),
        ({"tcp_position": np.array([0.0, np.nan, 2e4])}, ["NONFINITE_POSE"]),
        ({"tcp_position": np.array([1e4, -1e4, 0.0])}, []),
        ({"tcp_quaternion": np.full(4, 1e200)}, ["POSE_RANGE"]),
        ({"tcp_quaternion": np.full(4, np.inf)}, ["NONFINITE_POSE"]),
        ({"tcp_quaternion": np.zeros(4)}, ["POSE_RANGE"]),
        ({"goal_distance": -1e-9}, ["DISTANCE_RANGE"]),
        ({"goal_distance": float("nan")}, ["NONFINITE_DISTANCE"]),
        ({"gripper": float("-inf")}, ["NONFINITE_GRIPPER"]),
        ({"latency_s": "soon"}, ["LATENCY_VALUE_SHAPE"]),
        ({"latency_s": -0.1}, ["LATENCY_VALUE_RANGE"]),
        ({"success": "yes"}, ["SUCCESS_SHAPE"]),
        ({"success": [True, True]}, ["SUCCESS_SHAPE"]),
    ],
)
def test_unusable_values_are_reported(given: dict[str, Any], expected: list[str]) -> None:
    step = Step(**given)
    assert codes(step) == expected
    (name,) = given
    assert (getattr(evidence_of(step), name) is None) == bool(expected)


def test_a_norm_is_reported_as_far_as_it_can_be_computed() -> None:
    def norm(size: float) -> float:
        (fault,) = evidence_of(Step(tcp_quaternion=np.full(4, size))).problems
        return float(fault.detail["norm"])

    assert (norm(300.0), norm(1e200)) == (600.0, 1e4)


@pytest.mark.parametrize(
    ("ids", "known"),
    [
        (np.arange(7.0), True),
        (np.arange(7) + 0.5, False),
        (np.full(7, 40), False),
        (np.full(7, -1), False),
        (np.full(7, 1e19), False),
        (np.full(7, np.nan), False),
        (np.arange(6), False),
        ("ids", False),
    ],
)
def test_ids_that_are_not_classes_leave_alpha_unknown(ids: Any, known: bool) -> None:
    step = replace(good(), token_ids=ids)
    assert codes(step) == ([] if known else ["TOKEN_IDS"])
    evidence = evidence_of(step)
    assert ("alpha" in evidence.signals) == known
    assert evidence.signals["TB-E"] == evidence_of(good()).signals["TB-E"]


@pytest.mark.parametrize("span", [(0, 2), (0, 40), (39, 40), (-1, 3), (0, 41), "bins", (1,)])
def test_a_range_that_does_not_fit_leaves_the_bins_unknown(span: Any) -> None:
    step = replace(good(), action_token_range=span)
    fits = span in [(0, 2), (0, 40)]
    signals = evidence_of(step).signals
    assert codes(step) == ([] if fits else ["LOGITS_SHAPE"])
    assert ("TB-E_bins" in signals) == ("action_mass" in signals) == fits


def test_bad_tokens_are_named_and_bins_without_any_logit_have_no_mass() -> None:
    step = good()
    step.token_logits[2, 3] = np.inf
    step.token_logits[5] = -np.inf
    evidence = evidence_of(step)
    assert evidence.problems[0].detail["tokens"] == [2, 5]
    assert (evidence.signals, evidence.tokens, evidence.logits_id) == ({}, {}, None)
    step = good()
    step.token_logits[1, 8:30] = -np.inf
    evidence = evidence_of(step)
    assert evidence.problems == ()
    assert evidence.signals["action_mass"] == 0.0
    assert "TB-E_bins" not in evidence.signals
    assert sorted(evidence.tokens) == ["TB-D", "TB-E", "TB-PCS", "TB-TP"]


def test_evidence_is_of_its_step_alone() -> None:
    reader, step = StepReader(-np.ones(7), np.ones(7)), good()
    first = reader.read(step, 0)
    before = copy.deepcopy(first)
    for name in ARRAYS:
        getattr(step, name)[...] = 0
    reader.read(step, 1)
    assert first == before
    assert before == copy.deepcopy(reader).read(good(), 0)


def test_huge_logits_of_one_token_do_not_swallow_the_others() -> None:
    logits = np.zeros((2, 4), np.float32)
    logits[1] = np.finfo(np.float32).min
    got = evidence_of(Step(token_logits=logits, token_ids=np.array([2, 2]))).signals["alpha"]
    assert got == pytest.approx(0.5)  # a quarter, and one that is lost in so large a number


def test_a_tensor_without_values_is_a_fault() -> None:
    torch = pytest.importorskip("torch")
    assert codes(Step(token_logits=torch.empty(7, 9, device="meta"))) == ["LOGITS_SHAPE"]


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_an_error_without_a_message_is_still_reported() -> None:
    error: Any = MuteError()
    assert evidence_of(Step(policy_error=error)).policy_error == "MuteError (message unavailable)"


@pytest.mark.parametrize("given", [np.array([False, False]), float("nan"), "no", [], None])
def test_an_unreadable_decode_ok_does_not_count_as_true(given: Any) -> None:
    assert not evidence_of(Step(decode_ok=given)).decode_ok
    array: Any = np.array(True)
    assert evidence_of(Step(decode_ok=array)).decode_ok
