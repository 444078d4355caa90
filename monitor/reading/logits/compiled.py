"""One compiled pass over float32 logits, where numba is installed (extra ``fast``).

The functions below are plain Python, and slow as such. numba turns their loops into vector code
that reads every logit once from memory and once or twice from the cache, and then pools the
tokens of each group: of one step, or of each environment. The exponential is Cephes' expf with a
shorter polynomial: Cody and Waite's reduction by multiples of log 2, then degree 5, whose
coefficients from the second on minimise the largest relative error on [-log 2 / 2, log 2 / 2]
(1.7e-7 with float32's rounding). The fingerprint multiplies and adds the bits of a token's sums
by odd constants, goes on to the next token by one more and ends with a xorshift, as splitmix64
does.

numba compiles again when this file changes, and looks at no other, so all that the compiled code
rests on stands here, the records too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from math import exp, isfinite, isnan, log, nan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.records import FloatArray
from monitor.stage.compiled import announced, usable

__all__ = ["METRICS", "POOLED", "SUMMARY", "SUMMARY_SIZE", "TOKEN", "TOKEN_SIZE", "load_kernel"]

logger = logging.getLogger(__name__)

Kernel = Callable[[Any, NDArray[np.int64], int, int, FloatArray, FloatArray], None]

FASTMATH: Final = frozenset({"contract", "reassoc", "nsz"})
"""Lets sums over the vocabulary be taken in lanes, so in an order of the compiler's choice; the
results are kept as evidence and not computed again. NaN and infinity keep their meaning."""

METRICS: Final = ("entropy", "gini", "top_probability", "margin")
"""Fields of TB-E, TB-D, TB-TP and TB-PCS."""


def floats(*names: str | tuple[str, np.dtype[Any]]) -> np.dtype[Any]:
    """Return a record of float64 fields, some of which may be records themselves."""
    return np.dtype([(one, np.float64) if isinstance(one, str) else one for one in names])


TOKEN: Final = floats(*METRICS, "bin_share")
"""Record of a token: its metrics, and the share of the probability that the action bins hold.

A field is NaN where it is unknown: all of them where the token's logits are unusable, the share
also where there is no range of bins."""

POOLED: Final = floats(*(f"{name}{end}" for name in METRICS for end in ("", "_max")))
"""Record of metrics over tokens: the mean, and the largest (``_max``)."""

SUMMARY: Final = floats(
    ("whole", POOLED),
    ("bins", POOLED),
    "action_mass",
    "alpha",
    "tokens_outside",
    "fingerprint",
    "unusable",
    "ids_fit",
)
"""Record of a group of tokens; NaN is unknown.

whole: Metrics over all classes.
bins: Metrics over the action bins alone; equal to ``whole`` without a range of bins.
action_mass: Smallest share of the probability that a token's bins hold; 1 without a range.
alpha: Geometric mean probability of the chosen tokens.
tokens_outside: Number of tokens whose likeliest or chosen class is not a bin; NaN for none.
fingerprint: Whole number below 2^52, equal for equal logits.
unusable: Number of tokens whose logits hold NaN, +inf or only -inf. Unless it is 0, the fields
    above are NaN.
ids_fit: Whether all chosen ids are classes; NaN without ids.
"""
SUMMARY_SIZE: Final = SUMMARY.itemsize // 8
TOKEN_SIZE: Final = TOKEN.itemsize // 8

SUMS: Final = floats("weighted", "squares", "z", "second", "largest", "top", "log_z", "chosen")
"""Record of a token's sums, with e = exp(logit - largest), so that the largest e is 1.

weighted: Sum of e log e.
squares: Sum of e^2.
z: Sum of e.
second: Second largest e.
largest: Largest logit.
top: Class of the largest logit.
log_z: Logarithm of the normaliser of the logits; not finite where they are unusable.
chosen: Logit of the chosen token; NaN without one.
"""

CHUNK: Final = 1024
"""Logits that are summed up in float32."""
STRIDE: Final = 32
"""Logits that are looked through at once for the largest."""
f32, i32, f64, u64 = np.float32, np.int32, np.float64, np.uint64
LEAST: Final = f32(-87.0)
"""Stands for the logarithm of 0: the last integer whose e^x is a normal number."""
LOG2_E: Final = f32(1.4426950408889634)
LOG_2: Final = f32(0.6931471805599453)
ROUND: Final = f32(12582912.0)
"""1.5 x 2^23: adding it leaves the nearest integer in the lowest bits."""
ROUND_BITS: Final = i32(0x4B400000)
P2: Final = f32(0.499992311000824)
P3: Final = f32(0.16667114198207855)
P4: Final = f32(0.04189015552401543)
P5: Final = f32(0.008312520571053028)
ONE: Final = f32(1.0)
ZERO: Final = f32(0.0)
BIAS: Final = i32(127)
MANTISSA: Final = i32(23)
M0: Final = u64(0x9E3779B97F4A7C15)
M1: Final = u64(0xC2B2AE3D27D4EB4F)
M2: Final = u64(0x165667B19E3779F9)
M3: Final = u64(0xD6E8FEB86659FD93)
M4: Final = u64(0xFF51AFD7ED558CCD)
M5: Final = u64(0xC4CEB9FE1A85EC53)
"""Odd, and random otherwise: the primes and mixers of xxHash64, splitmix64 and MurmurHash3."""
STEP: Final = M0
"""Takes a fingerprint from one token to the next."""
HALF: Final = u64(32)
LAST: Final = u64(12)
"""Bits that the fingerprint leaves out, so that a float64 holds it exactly."""


def power_of_e(x: Any) -> Any:
    """Return e^x in float32 for x in [-87, 0]; anything for NaN but NaN stays NaN."""
    power = f32(x * LOG2_E + ROUND).view(i32)
    r = x - f32(i32(power - ROUND_BITS)) * LOG_2
    y = ((((P5 * r + P4) * r + P3) * r + P2) * r + ONE) * r + ONE
    return f32(y * i32(i32(power + BIAS) << MANTISSA).view(f32))


def find_largest(row: Any) -> int:
    """Return the first index of the largest logit; NaN and +inf win, a NaN with its sign set loses.

    As integers, floats that are not negative keep their order and the others are turned round.
    """
    v = len(row)
    most = least = f32(row[0]).view(i32)
    for j in range(v):
        each = f32(row[j]).view(i32)
        most = each if each > most else most
        least = each if each < least else least
    best = least if most < 0 else most
    at = 0
    while at + STRIDE <= v:
        seen = i32(0)
        for k in range(STRIDE):
            seen = i32(seen | (f32(row[at + k]).view(i32) == best))
        if seen:
            break
        at += STRIDE
    while at < v - 1 and f32(row[at]).view(i32) != best:
        at += 1
    return at


def sum_up(row: Any, log_v: float, token: Any, sums: Any) -> None:
    """Write the records of one token."""
    v = len(row)
    at = find_largest(row)
    largest = row[at]
    token.entropy = token.gini = token.top_probability = token.margin = token.bin_share = nan
    sums.weighted, sums.squares, sums.z, sums.second = 0.0, 1.0, 1.0, 0.0
    sums.largest, sums.top, sums.log_z, sums.chosen = largest, at, largest, nan
    if not isfinite(largest):
        return
    z = weighted = squares = f64(0.0)
    nearest, ties = i32(0), i32(0)
    for begin in range(0, v, CHUNK):
        part, part_weighted, part_squares = ZERO, ZERO, ZERO
        for j in range(begin, min(begin + CHUNK, v)):
            x = row[j] - largest
            x = LEAST if x < LEAST else x
            e = power_of_e(x)
            part += e
            part_weighted += e * x
            part_squares += e * e
            # The bits of a negative float are a negative integer, the smaller the nearer to 0.
            x_bits = f32(x).view(i32)
            nearest = x_bits if x_bits < nearest else nearest
            ties = i32(ties + (x == ZERO))
        z += part
        weighted += part_weighted
        squares += part_squares
    if isnan(z):  # a NaN with its sign set
        sums.largest = sums.log_z = nan
        return
    second = 1.0 if ties > 1 else f64(power_of_e(i32(nearest).view(f32)))
    p1, log_z = 1.0 / z, log(z)
    sums.weighted, sums.squares, sums.z, sums.second = weighted, squares, z, second
    scale = v / (v - 1.0)
    token.entropy = min(max((log_z - weighted * p1) / log_v, 0.0), 1.0)
    token.gini = min(max((1.0 - squares * p1 * p1) * scale, 0.0), 1.0)
    token.top_probability = min(max(1.0 - (p1 - 1.0 / v) * scale, 0.0), 1.0)
    token.margin = min(max(1.0 - (p1 - second * p1), 0.0), 1.0)
    sums.log_z = log_z + largest


def pool_metrics(tokens: Any, out: Any) -> None:
    """Write mean and largest over some tokens of each metric; added up in their order."""
    entropy = entropy_max = gini = gini_max = 0.0
    top_probability = top_probability_max = margin = margin_max = 0.0
    count = len(tokens)
    for i in range(count):
        token = tokens[i]
        entropy += token.entropy
        gini += token.gini
        top_probability += token.top_probability
        margin += token.margin
        entropy_max = max(entropy_max, token.entropy)
        gini_max = max(gini_max, token.gini)
        top_probability_max = max(top_probability_max, token.top_probability)
        margin_max = max(margin_max, token.margin)
    out.entropy, out.entropy_max = entropy / count, entropy_max
    out.gini, out.gini_max = gini / count, gini_max
    out.top_probability = top_probability / count
    out.top_probability_max = top_probability_max
    out.margin, out.margin_max = margin / count, margin_max


def fingerprint(sums: Any, count: int) -> float:
    """Return a whole number below 2^52 that distinguishes the logits of one group from others."""
    state = u64(0)
    for i in range(count):
        one = sums[i]
        mixed = u64(
            f64(one.weighted).view(u64) * M0
            + f64(one.squares).view(u64) * M1
            + f64(one.z).view(u64) * M2
            + f64(one.second).view(u64) * M3
            + f64(one.top).view(u64) * M4
            + f64(one.log_z).view(u64) * M5
        )
        state = u64(state * STEP + mixed)
    return f64(u64(u64(u64(state ^ u64(state >> HALF)) * STEP) >> LAST))


def pool_bins(tokens: Any, sums: Any, ids: Any, low: int, high: int, out: Any) -> None:
    """Write what is pooled over the bins, which are the second half of the records."""
    count = len(tokens) // 2
    outside = empty = 0
    for i in range(count):
        empty += not isfinite(sums[count + i].log_z)
        stray = not low <= sums[i].top < high
        if len(ids) > 0:
            stray = stray or not low <= ids[i] < high
        outside += stray
    if outside > 0:
        out.tokens_outside = outside
    out.action_mass = 0.0
    if empty == 0:
        pool_metrics(tokens[count:], out.bins)
        least = 1.0
        for i in range(count):
            share = min(exp(sums[count + i].log_z - sums[i].log_z), 1.0)
            tokens[i].bin_share = share
            least = min(least, share)
        out.action_mass = least


def pool(tokens: Any, sums: Any, ids: Any, low: int, high: int, out: Any) -> None:
    """Write what is pooled over one group's tokens, all of them usable.

    Args:
        tokens: ``(N,)`` records of :data:`TOKEN`, or ``(2 N,)`` where the second half is of the
            bins; the share of the bins is written.
        sums: As many records of :data:`SUMS`.
        ids: ``(N,)`` classes of the chosen tokens, or empty.
        low: First class of the action bins.
        high: Class after their last; 0 without a range.
        out: Record of :data:`SUMMARY`, written to.
    """
    count = len(tokens) if high == 0 else len(tokens) // 2
    out.fingerprint = fingerprint(sums, count)
    pool_metrics(tokens[:count], out.whole)
    if high > 0:
        pool_bins(tokens, sums, ids, low, high, out)
    else:
        pool_metrics(tokens, out.bins)
        out.action_mass = 1.0
    if len(ids) > 0:
        total = 0.0
        for i in range(count):
            # Token by token, as huge logits swallow the others in a sum; min() keeps the compiler,
            # which may take sums in any order, from adding them up apart.
            total += min(sums[i].chosen - sums[i].log_z, 0.0)
        out.alpha = min(exp(total / count), 1.0)


def digest(
    logits: Any,
    ids: NDArray[np.int64],
    low: int,
    high: int,
    summaries: FloatArray,
    rows: FloatArray,
) -> None:
    """Sum up the logits of G groups of N tokens, and pool them within each group.

    Args:
        logits: ``(G N, V)`` float32, contiguous.
        ids: ``(G N,)`` classes of the chosen tokens, or empty; numbers that are not classes are
            noticed.
        low: First class of the action bins.
        high: Class after their last; 0 without a range.
        summaries: ``(G, 22)`` one :data:`SUMMARY` per group; written to.
        rows: ``(G, W, 5)`` one :data:`TOKEN` per token of each group; W is N, or 2 N with a range
            (the second half is of the bins). ``(1, W, 5)`` keeps the last group's. Written to.
    """
    summaries[:] = nan
    outs, tokens_of_all = summaries.reshape(-1).view(SUMMARY), rows.reshape(-1).view(TOKEN)
    groups, width = len(outs), rows.shape[1]
    count, v = len(logits) // groups, logits.shape[1]
    log_v, log_bins = log(v), log(max(high - low, 2))
    sums = np.empty(width, SUMS)
    for g in range(groups):
        out, begin = outs[g], g % len(rows) * width
        tokens = tokens_of_all[begin : begin + width]
        chosen = ids[g * count : g * count + count] if len(ids) > 0 else ids
        unusable, fitting = 0, True
        for i in range(count):
            row = logits[g * count + i]
            sum_up(row, log_v, tokens[i], sums[i])
            unusable += not isfinite(sums[i].largest)
            if high - low == v:
                tokens[count + i], sums[count + i] = tokens[i], sums[i]
            elif high > 0:
                sum_up(row[low:high], log_bins, tokens[count + i], sums[count + i])
            if len(chosen) > 0:
                fits = 0 <= chosen[i] < v
                fitting = fitting and fits
                if fits:
                    sums[i].chosen = row[chosen[i]]
        out.unusable = unusable
        if len(chosen) > 0:
            out.ids_fit = fitting
        if unusable == 0:
            pool(tokens, sums, chosen if fitting else chosen[:0], low, high, out)


@cache
def load_kernel() -> Kernel | None:
    """Return :func:`digest` compiled, None without numba; the first time ever takes seconds."""
    if not usable():
        return None
    from numba import float32, float64, int64, njit, void
    from numba.extending import register_jitable

    for helper in (sum_up, fingerprint, pool_bins, pool):
        register_jitable(fastmath=set(FASTMATH))(helper)
    register_jitable(fastmath=False)(pool_metrics)
    for small in (power_of_e, find_largest):
        register_jitable(inline="always", fastmath=set(FASTMATH))(small)
    signature = void(float32[:, ::1], int64[::1], int64, int64, float64[:, ::1], float64[:, :, ::1])
    options = {"fastmath": set(FASTMATH), "nogil": True, "error_model": "numpy"}
    with announced("the pass over logits"):
        try:
            kernel: Kernel = njit(signature, cache=True, **options)(digest)
        except Exception as error:  # no folder that may hold the cache, or a full disk
            logger.warning("numba cannot keep %s, so every start compiles it: %s", __name__, error)
            kernel = njit(signature, **options)(digest)
    return kernel
