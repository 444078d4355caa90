from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from scipy import special, stats

from monitor.metrics.token_uncertainty import NAMES, SUMS, VALUES
from monitor.reading.logits import plain as plain_logits
from monitor.reading.logits.compiled import (
    ALPHA,
    BAD,
    CHOSEN,
    FITTING,
    LARGEST,
    LOG_Z,
    MASS,
    OF_ALL,
    OF_BINS,
    OUTSIDE,
    POOLED,
    PRINT,
    ROWS,
    SHARE,
    TOP,
    WEIGHTED,
)
from monitor.reading.logits.plain import Scratch, digest_of

pytestmark = pytest.mark.usefixtures("numba_or_not")
"""Each with what is compiled and without."""


def reference(logits: np.ndarray) -> np.ndarray:
    p = special.softmax(logits.astype(np.float64), axis=1)
    v = p.shape[1]
    ordered = np.sort(p, axis=1)
    p1, p2 = ordered[:, -1], ordered[:, -2]
    by_name = {
        "TB-TP": 1.0 - (p1 - 1.0 / v) / (1.0 - 1.0 / v),
        "TB-PCS": 1.0 - (p1 - p2),
        "TB-D": (1.0 - (p**2).sum(axis=1)) / (1.0 - 1.0 / v),
        "TB-E": stats.entropy(p, axis=1) / np.log(v),
    }
    return np.stack([by_name[name] for name in NAMES])


def whole_table(
    logits: np.ndarray | torch.Tensor,
    ids: np.ndarray | None = None,
    span: tuple[int, int] | None = None,
    scratch: Scratch | None = None,
) -> np.ndarray:
    out = digest_of(logits, ids, span, scratch or Scratch())
    return out[0, POOLED:].reshape(ROWS, -1)


def table(logits: np.ndarray, scratch: Scratch | None = None) -> np.ndarray:
    return whole_table(logits, scratch=scratch)[:CHOSEN]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 2), (7, 256), (56, 300), (3, 4096), (11, 32064)])
@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 30.0, 1e4])
def test_values_equal_scipy(dtype: type, shape: tuple[int, int], scale: float) -> None:
    rng = np.random.default_rng(shape[1])
    logits: np.ndarray = (rng.normal(size=shape) * scale).astype(dtype)
    seen = table(logits)
    np.testing.assert_allclose(seen[VALUES], reference(logits), atol=2e-6)
    expected = special.logsumexp(logits.astype(np.float64), axis=1)
    np.testing.assert_allclose(seen[LOG_Z], expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("offset", [-3e4, -40.0, 40.0, 3e4])
@pytest.mark.parametrize("v", [64, 8192])
def test_an_offset_common_to_all_classes_changes_nothing(offset: float, v: int) -> None:
    logits = (3.0 * np.random.default_rng(0).normal(size=(7, v))).astype(np.float32)
    moved = (logits + np.float32(offset)).astype(np.float32)
    np.testing.assert_allclose(table(moved)[VALUES], reference(moved), atol=2e-6)


@pytest.mark.parametrize("v", [3, 5000])
def test_a_masked_class_counts_for_nothing(v: int) -> None:
    logits = np.full((1, v), -np.inf)
    logits[0, :2] = 1.0, 2.0
    assert table(logits)[VALUES][0, 0] * np.log(v) == pytest.approx(0.582203, abs=1e-6)


@pytest.mark.parametrize("v", [3, 5000])
def test_one_class_left_is_certain(v: int) -> None:
    logits = np.full((1, v), -np.inf, dtype=np.float32)
    logits[0, 1] = 5.0
    np.testing.assert_allclose(table(logits)[VALUES], 0.0, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("v", [4, 5000])
def test_the_largest_numbers_of_a_type_are_still_numbers(dtype: type, v: int) -> None:
    most = np.finfo(dtype).max
    logits: np.ndarray = np.full((2, v), -most, dtype=dtype)
    logits[0, 1] = logits[1, 1] = logits[1, 2] = most
    expected = reference(np.where(logits > 0, 0.0, -1e6))
    np.testing.assert_allclose(table(logits)[VALUES], expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(200, 17), (3, 9000)])
def test_values_stay_in_the_unit_interval_and_inputs_untouched(shape: tuple[int, int]) -> None:
    logits = np.random.default_rng(0).normal(size=shape).astype(np.float32) * 40
    before = logits.copy()
    values = table(logits)[VALUES]
    assert values.min() >= 0.0
    assert values.max() <= 1.0
    np.testing.assert_array_equal(logits, before)


@pytest.mark.parametrize("shape", [(9, 16), (40, 8192)])
def test_layout_and_access_do_not_matter(shape: tuple[int, int]) -> None:
    logits = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    plain, scratch = table(logits), Scratch()
    frozen = logits.copy()
    frozen.setflags(write=False)
    wide = np.repeat(logits, 2, axis=1)[:, ::2]
    for other in (frozen, wide, np.asfortranarray(logits), logits[::-1][::-1]):
        np.testing.assert_array_equal(table(other, scratch), plain)
    alone = np.concatenate([table(row[None], scratch) for row in logits], axis=1)
    np.testing.assert_array_equal(alone, plain)


@pytest.mark.parametrize("v", [5, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
def test_largest_is_not_finite_exactly_where_a_row_is_unusable(
    bad: float, v: int, dtype: type
) -> None:
    logits: np.ndarray = np.random.default_rng(2).normal(size=(3, v)).astype(dtype)
    clean = table(logits)
    logits[1, slice(None) if bad < 0 else 2] = bad
    seen = table(logits)
    assert np.isfinite(seen[LARGEST]).tolist() == [True, False, True]
    assert np.isfinite(np.delete(seen[SUMS], LARGEST - WEIGHTED, axis=0)).all()
    np.testing.assert_array_equal(seen[:, [0, 2]], clean[:, [0, 2]])
    assert seen[TOP, 0] == logits[0].argmax()


def test_a_scratch_does_not_grow_nor_travel() -> None:
    scratch = Scratch()
    for v in range(2, 60):
        table(np.zeros((1, v)), scratch)
    assert len(scratch._kept) <= 8
    assert len(pickle.dumps(scratch)) < 100
    copied = copy.deepcopy(scratch)
    assert not copied._kept
    np.testing.assert_array_equal(table(np.eye(3), copied), table(np.eye(3), scratch))


@pytest.mark.parametrize("v", [64, 5000])
def test_a_device_gives_the_same_sums(v: int) -> None:
    rng = np.random.default_rng(3)
    logits = (4.0 * rng.normal(size=(7, v))).astype(np.float32)
    logits[2, 5] = -np.inf
    ids, span = rng.integers(0, v, 7), (8, 40)
    here = whole_table(logits, ids, span)
    there = whole_table(torch.from_numpy(logits), ids, span)
    np.testing.assert_allclose(there, here, rtol=2e-5, atol=1e-5)
    np.testing.assert_array_equal(there[CHOSEN], here[CHOSEN])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bins_and_chosen_tokens_are_read_beside_the_whole(dtype: type) -> None:
    rng = np.random.default_rng(4)
    logits: np.ndarray = rng.normal(size=(5, 300)).astype(dtype)
    ids = rng.integers(0, 300, 5)
    ids.setflags(write=False)
    seen = whole_table(logits, ids, (100, 356 - 100))
    alone = np.delete(table(logits), SHARE, axis=0)
    np.testing.assert_allclose(np.delete(seen[:CHOSEN, :5], SHARE, axis=0), alone, rtol=1e-12)
    np.testing.assert_allclose(seen[VALUES, 5:], reference(logits[:, 100:256]), atol=2e-6)
    np.testing.assert_array_equal(
        seen[CHOSEN, :5], np.take_along_axis(logits, ids[:, None], 1)[:, 0]
    )
    assert np.isnan(seen[CHOSEN, 5:]).all()


SPANS = [None, (0, 40), (8, 30)]


def odd_logits(rng: np.random.Generator) -> np.ndarray:
    """Six groups of three tokens: plain, NaN, only -inf, no bin left, ties, masked."""
    logits = (3.0 * rng.normal(size=(6, 3, 40))).astype(np.float32)
    logits[1, 2, 7] = np.nan
    logits[2, 0] = -np.inf
    logits[3, 1, 8:30] = -np.inf
    logits[4, 0], logits[4, 1, :] = np.round(logits[4, 0]), 0.0
    logits[4, 2, ::2] *= -0.0
    logits[5, :, 3:] = -np.inf
    return logits.reshape(18, 40)


def pooled(
    logits: np.ndarray | torch.Tensor,
    ids: np.ndarray | None = None,
    span: tuple[int, int] | None = None,
    groups: int = 1,
) -> np.ndarray:
    return digest_of(logits, ids, span, Scratch(), groups=groups, rows=0)


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("given", ["no ids", "ids", "some that are none"])
def test_numpy_pools_what_the_kernel_pools(
    span: tuple[int, int] | None, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    logits, ids = odd_logits(rng), None if given == "no ids" else rng.integers(0, 40, 18)
    if given == "some that are none":
        assert ids is not None
        ids[[0, 5, 16]] = -1, 40, 2**62
    here = digest_of(logits, ids, span, Scratch(), groups=6)
    monkeypatch.setattr(plain_logits, "load_kernel", lambda: None)
    for other in (logits, torch.from_numpy(logits), logits.astype(np.float64)):
        there = digest_of(other, ids, span, Scratch(), groups=6)
        columns = [k for k in range(POOLED) if k != PRINT]
        np.testing.assert_allclose(there[:, columns], here[:, columns], atol=2e-6)
        np.testing.assert_array_equal(np.isnan(there[:, PRINT]), np.isnan(here[:, PRINT]))
        well = here[:, BAD] == 0
        rows = there[well, POOLED:].reshape(well.sum(), ROWS, -1)
        expected = here[well, POOLED:].reshape(rows.shape)
        np.testing.assert_allclose(rows[:, : SHARE + 1], expected[:, : SHARE + 1], atol=2e-6)


@pytest.mark.parametrize("span", SPANS)
def test_what_is_pooled_is_of_the_tokens(span: tuple[int, int] | None) -> None:
    rng = np.random.default_rng(6)
    logits, ids = odd_logits(rng)[:3], rng.integers(0, 40, 3)
    (out,), seen = pooled(logits, ids, span), whole_table(logits, ids, span)
    assert (out[BAD], out[FITTING]) == (0.0, 1.0)
    p = special.softmax(logits.astype(np.float64), axis=1)
    parts = {OF_ALL: seen[VALUES, :3], OF_BINS: seen[VALUES, -3:]}
    for begin, values in parts.items():
        np.testing.assert_allclose(out[begin : begin + 8 : 2], values.mean(axis=1), atol=1e-12)
        np.testing.assert_array_equal(out[begin + 1 : begin + 8 : 2], values.max(axis=1))
    low, high = span or (0, 40)
    assert out[MASS] == pytest.approx(p[:, low:high].sum(axis=1).min(), abs=1e-6)
    assert out[ALPHA] == pytest.approx(stats.gmean(p[np.arange(3), ids]), rel=1e-5)
    tops = p.argmax(axis=1)
    outside = sum(not (low <= a < high and low <= b < high) for a, b in zip(tops, ids, strict=True))
    assert (out[OUTSIDE] == outside) if outside else np.isnan(out[OUTSIDE])


@pytest.mark.parametrize("span", SPANS)
def test_a_group_does_not_depend_on_its_neighbours(span: tuple[int, int] | None) -> None:
    rng = np.random.default_rng(7)
    logits, ids = odd_logits(rng), rng.integers(0, 40, 18)
    together = pooled(logits, ids, span, groups=6)
    for g, row in enumerate(together):
        part = slice(3 * g, 3 * g + 3)
        np.testing.assert_array_equal(pooled(logits[part], ids[part], span)[0], row)
    assert (together[:, BAD] > 0).tolist() == [False, True, True, False, False, False]
    assert np.isnan(together[1:3, :BAD]).all()
    if span == (8, 30):
        assert np.isnan(together[3, OF_BINS:MASS]).all()
        assert together[3, MASS] == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fingerprint_tells_logits_apart(dtype: type) -> None:
    rng = np.random.default_rng(8)
    logits: np.ndarray = rng.normal(size=(7, 64)).astype(dtype)

    def print_of(given: np.ndarray, span: tuple[int, int] | None = None) -> float:
        return float(pooled(given, None, span)[0, PRINT])

    first = print_of(logits)
    assert first == int(first) < 2**52
    assert first == print_of(logits.copy()) == print_of(np.asfortranarray(logits))
    assert first == print_of(logits, (5, 60)), "what is looked at apart changes nothing"
    seen = {first, print_of(logits[::-1]), print_of(logits[:, ::-1])}
    for i in range(7):
        changed = logits.copy()
        changed[i, i] += 1e-3
        seen.add(print_of(changed))
    assert len(seen) == 10


@pytest.mark.parametrize("v", [2, 31, 33, 1024, 1025, 4099])
def test_two_likeliest_classes_wherever_they_stand(v: int) -> None:
    for at in {0, 1, v // 2, v - 1}:
        logits = np.full((2, v), -3.0, dtype=np.float32)
        logits[:, at] = 2.0
        logits[1, v - 1 - at if v - 1 - at != at else at - 1] = 2.0
        seen = whole_table(logits)
        np.testing.assert_allclose(seen[VALUES], reference(logits), atol=4e-6)
        assert seen[TOP].tolist() == logits.argmax(axis=1).tolist()


def test_logits_anywhere_in_memory_are_read() -> None:
    plain = np.random.default_rng(9).normal(size=(3, 40)).astype(np.float32)
    room = np.zeros(plain.nbytes + 1, dtype=np.uint8)
    crooked = room[1:].view(np.float32).reshape(plain.shape)
    crooked[:] = plain
    assert not crooked.flags.aligned
    np.testing.assert_array_equal(whole_table(crooked), whole_table(plain))
    ids = np.arange(6)[::2]
    np.testing.assert_array_equal(whole_table(plain, ids), whole_table(plain, ids.copy()))
    swapped = plain.astype(">f4")
    np.testing.assert_allclose(whole_table(swapped)[VALUES], whole_table(plain)[VALUES], atol=1e-6)
