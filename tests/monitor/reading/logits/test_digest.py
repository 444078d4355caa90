from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import special, stats

from monitor.metrics.token_uncertainty import TOKEN_METRICS, softmax
from monitor.reading.logits import digest as logits_digest
from monitor.reading.logits.compiled import METRICS, SUMMARY, TOKEN
from monitor.reading.logits.digest import POOLED_IDS, REST, digest_logits, token_metrics

pytestmark = pytest.mark.usefixtures("numba_or_not")
"""Each with what is compiled and without."""

SPANS = [None, (0, 40), (8, 30)]


def tokens(logits: Any, ids: Any = None, span: tuple[int, int] | None = None) -> np.ndarray:
    """Records of the tokens of one step."""
    _, rows = digest_logits(logits, ids, span)
    return np.asarray(rows[0].view(TOKEN)[:, 0])


def summaries(
    logits: Any, ids: Any = None, span: tuple[int, int] | None = None, groups: int = 1
) -> np.ndarray:
    """Records of the groups."""
    return digest_logits(logits, ids, span, groups=groups, by_token=False)[0].view(SUMMARY)[:, 0]


def values(logits: Any) -> np.ndarray:
    """The four metrics by token, ``(4, N)``."""
    found = tokens(logits)
    return np.stack([found[name] for name in METRICS])


def expected(logits: np.ndarray) -> np.ndarray:
    """The same by the formulas, in double precision."""
    p = softmax(logits.astype(np.float64))
    return np.stack([formula(p) for formula in TOKEN_METRICS.values()])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 2), (7, 256), (56, 300), (3, 4096), (11, 32064)])
@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 30.0, 1e4])
def test_values_are_those_of_the_formulas(
    dtype: type, shape: tuple[int, int], scale: float
) -> None:
    rng = np.random.default_rng(shape[1])
    logits: np.ndarray = (rng.normal(size=shape) * scale).astype(dtype)
    np.testing.assert_allclose(values(logits), expected(logits), atol=2e-6)


@pytest.mark.parametrize("offset", [-3e4, -40.0, 40.0, 3e4])
@pytest.mark.parametrize("v", [64, 8192])
def test_an_offset_common_to_all_classes_changes_nothing(offset: float, v: int) -> None:
    logits = (3.0 * np.random.default_rng(0).normal(size=(7, v))).astype(np.float32)
    moved = (logits + np.float32(offset)).astype(np.float32)
    np.testing.assert_allclose(values(moved), expected(moved), atol=2e-6)


@pytest.mark.parametrize("v", [3, 5000])
def test_a_masked_class_counts_for_nothing(v: int) -> None:
    logits = np.full((1, v), -np.inf)
    logits[0, :2] = 1.0, 2.0
    assert tokens(logits)["entropy"][0] * np.log(v) == pytest.approx(0.582203, abs=1e-6)


@pytest.mark.parametrize("v", [3, 5000])
def test_one_class_left_is_certain(v: int) -> None:
    logits = np.full((1, v), -np.inf, dtype=np.float32)
    logits[0, 1] = 5.0
    np.testing.assert_allclose(values(logits), 0.0, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("v", [4, 5000])
def test_the_largest_numbers_of_a_type_are_still_numbers(dtype: type, v: int) -> None:
    most = np.finfo(dtype).max
    logits: np.ndarray = np.full((2, v), -most, dtype=dtype)
    logits[0, 1] = logits[1, 1] = logits[1, 2] = most
    wanted = expected(np.where(logits > 0, 0.0, -1e6))
    np.testing.assert_allclose(values(logits), wanted, atol=1e-6)


@pytest.mark.parametrize("shape", [(200, 17), (3, 9000)])
def test_values_stay_in_the_unit_interval_and_inputs_untouched(shape: tuple[int, int]) -> None:
    logits = np.random.default_rng(0).normal(size=shape).astype(np.float32) * 40
    before = logits.copy()
    found = values(logits)
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    np.testing.assert_array_equal(logits, before)


@pytest.mark.parametrize("shape", [(9, 16), (40, 8192)])
def test_layout_and_access_do_not_matter(shape: tuple[int, int]) -> None:
    logits = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    plain = values(logits)
    frozen = logits.copy()
    frozen.setflags(write=False)
    wide = np.repeat(logits, 2, axis=1)[:, ::2]
    for other in (frozen, wide, np.asfortranarray(logits), logits[::-1][::-1]):
        np.testing.assert_array_equal(values(other), plain)
    alone = np.concatenate([values(row[None]) for row in logits], axis=1)
    np.testing.assert_array_equal(alone, plain)


@pytest.mark.parametrize("v", [5, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
def test_a_token_is_unknown_exactly_where_its_logits_are_unusable(
    bad: float, v: int, dtype: type
) -> None:
    logits: np.ndarray = np.random.default_rng(2).normal(size=(3, v)).astype(dtype)
    clean = values(logits)
    logits[1, slice(None) if bad < 0 else 2] = bad
    found = values(logits)
    assert np.isnan(found).tolist() == [[False, True, False]] * 4
    np.testing.assert_array_equal(found[:, [0, 2]], clean[:, [0, 2]])
    (summary,) = summaries(logits)
    assert summary["unusable"] == 1.0
    assert np.isnan([summary["alpha"], summary["fingerprint"], summary["whole"]["gini"]]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bins_are_measured_next_to_the_whole(dtype: type) -> None:
    logits: np.ndarray = np.random.default_rng(4).normal(size=(5, 300)).astype(dtype)
    found = tokens(logits, None, (100, 256))
    whole, bins = (np.stack([part[m] for m in METRICS]) for part in (found[:5], found[5:]))
    np.testing.assert_array_equal(whole, values(logits))
    np.testing.assert_allclose(bins, expected(logits[:, 100:256]), atol=2e-6)
    share = special.softmax(logits.astype(np.float64), axis=1)[:, 100:256].sum(axis=1)
    np.testing.assert_allclose(found["bin_share"][:5], share, atol=1e-6)
    assert np.isnan(found["bin_share"][5:]).all()


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


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("given", ["no ids", "ids", "some that are none"])
def test_numpy_and_torch_pool_as_the_compiled_pass_does(
    span: tuple[int, int] | None, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    logits, ids = odd_logits(rng), None if given == "no ids" else rng.integers(0, 40, 18)
    if given == "some that are none":
        assert ids is not None
        ids[[0, 5, 16]] = -1, 40, 2**62
    here, rows = digest_logits(logits, ids, span, groups=6)
    monkeypatch.setattr(logits_digest, "load_kernel", lambda: None)
    prints = list(REST).index("fingerprint") + len(POOLED_IDS)
    for other in (logits, torch.from_numpy(logits), logits.astype(np.float64)):
        there, other_rows = digest_logits(other, ids, span, groups=6)
        np.testing.assert_array_equal(np.isnan(there[:, prints]), np.isnan(here[:, prints]))
        kept = np.delete(np.arange(here.shape[1]), prints)
        np.testing.assert_allclose(there[:, kept], here[:, kept], atol=3e-6)
        well = here.view(SUMMARY)["unusable"][:, 0] == 0
        np.testing.assert_allclose(other_rows[well], rows[well], atol=3e-6)


@pytest.mark.parametrize("span", SPANS)
def test_what_is_pooled_is_of_the_tokens(span: tuple[int, int] | None) -> None:
    rng = np.random.default_rng(6)
    logits, ids = odd_logits(rng)[:3], rng.integers(0, 40, 3)
    (out,), seen = summaries(logits, ids, span), tokens(logits, ids, span)
    assert (out["unusable"], out["ids_fit"]) == (0.0, 1.0)
    p = special.softmax(logits.astype(np.float64), axis=1)
    for part, records in (("whole", seen[:3]), ("bins", seen[-3:])):
        for name in METRICS:
            assert out[part][name] == pytest.approx(records[name].mean(), abs=1e-12)
            assert out[part][f"{name}_max"] == records[name].max()
    low, high = span or (0, 40)
    assert out["action_mass"] == pytest.approx(p[:, low:high].sum(axis=1).min(), abs=1e-6)
    assert out["alpha"] == pytest.approx(stats.gmean(p[np.arange(3), ids]), rel=1e-5)
    tops = p.argmax(axis=1)
    outside = sum(not (low <= a < high and low <= b < high) for a, b in zip(tops, ids, strict=True))
    found = out["tokens_outside"]
    assert (found == outside) if outside else np.isnan(found)


@pytest.mark.parametrize("span", SPANS)
def test_a_group_does_not_depend_on_its_neighbours(span: tuple[int, int] | None) -> None:
    rng = np.random.default_rng(7)
    logits, ids = odd_logits(rng), rng.integers(0, 40, 18)
    together, _ = digest_logits(logits, ids, span, groups=6)
    for g, row in enumerate(together):
        part = slice(3 * g, 3 * g + 3)
        np.testing.assert_array_equal(digest_logits(logits[part], ids[part], span)[0][0], row)
    named = together.view(SUMMARY)[:, 0]
    assert (named["unusable"] > 0).tolist() == [False, True, True, False, False, False]
    if span == (8, 30):
        assert np.isnan(named["bins"]["entropy"][3])
        assert named["action_mass"][3] == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fingerprint_tells_logits_apart(dtype: type) -> None:
    rng = np.random.default_rng(8)
    logits: np.ndarray = rng.normal(size=(7, 64)).astype(dtype)

    def print_of(given: np.ndarray, span: tuple[int, int] | None = None) -> float:
        return float(summaries(given, None, span)["fingerprint"][0])

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
        np.testing.assert_allclose(values(logits), expected(logits), atol=4e-6)
        for k in range(2):
            top = int(logits[k].argmax())
            inside = summaries(logits[k : k + 1], None, (min(top, v - 2), min(top, v - 2) + 2))
            assert np.isnan(inside["tokens_outside"]).all()


def test_logits_anywhere_in_memory_are_read() -> None:
    plain = np.random.default_rng(9).normal(size=(3, 40)).astype(np.float32)
    room = np.zeros(plain.nbytes + 1, dtype=np.uint8)
    crooked = room[1:].view(np.float32).reshape(plain.shape)
    crooked[:] = plain
    assert not crooked.flags.aligned
    np.testing.assert_array_equal(values(crooked), values(plain))
    ids = np.arange(6)[::2]
    first, _ = digest_logits(plain, ids, None)
    np.testing.assert_array_equal(first, digest_logits(plain, ids.copy(), None)[0])
    np.testing.assert_allclose(values(plain.astype(">f4")), values(plain), atol=1e-6)


def test_token_metrics_are_those_of_one_step_by_id() -> None:
    logits = np.random.default_rng(10).normal(size=(4, 30))
    found = token_metrics(logits.tolist(), [1, 2, 3, 29], (5, 20))
    wanted = expected(logits)
    for name, row in zip(TOKEN_METRICS, wanted, strict=True):
        assert found[name] == pytest.approx(row.mean(), abs=1e-6)
        assert found[f"{name}_max"] == pytest.approx(row.max(), abs=1e-6)
    p = special.softmax(logits, axis=1)
    assert found["alpha"] == pytest.approx(stats.gmean(p[np.arange(4), [1, 2, 3, 29]]))
    assert found["action_mass"] == pytest.approx(p[:, 5:20].sum(axis=1).min())
    logits[2, 3] = np.nan
    assert set(token_metrics(logits).values()) == {None}
    for wrong in (np.zeros(3), np.zeros((3, 1)), np.zeros((0, 3)), "logits"):
        with pytest.raises(ValueError, match=r"must be \(N, V\)"):
            token_metrics(wrong)
    with pytest.raises(ValueError, match="at least two of 30 classes"):
        token_metrics(logits, span=(20, 31))
