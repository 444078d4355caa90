"""One compiled pass over float32 logits, where numba is installed (extra ``fast``).

The functions below are plain Python, and slow as such; numba turns their loops into vector code
that reads every logit once from memory and once or twice from the cache, and pools what it found
over the tokens of each group: of one step, or of each environment. The exponential is Cephes' expf
with a shorter polynomial: Cody and Waite's reduction by multiples of log 2, then degree 5, whose
coefficients from the second on minimise the largest relative error on [-log 2 / 2, log 2 / 2]
(1.7e-7 with float32's rounding). The fingerprint multiplies and adds the bits of a token's sums by
odd constants, goes on to the next token by one more and ends with a xorshift, as splitmix64 does.

What numba keeps beside the source is made anew when this file changes, and no other: what the
compiled code rests on, so the layout too, stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import exp, isfinite, isnan, log, nan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.compiled import FASTMATH, compile_for, usable
from monitor.records import FloatArray

Kernel = Callable[[Any, NDArray[np.int64], int, int, FloatArray], None]

ENTROPY, GINI, TOP_PROBABILITY, MARGIN = range(4)
"""First rows of a table: TB-E, TB-D, TB-TP and TB-PCS, NaN where a token's logits are unusable."""
SHARE: Final = 4
"""Row of the action bins' share of the probability, NaN where they are not looked at apart."""
WEIGHTED, SQUARES, Z, SECOND, LARGEST, TOP = range(5, 11)
"""Rows of the sums: sum e log e, sum e^2, sum e, second e, largest logit, its class; with
e = exp(logit - largest), so that the largest e is 1. Where the largest is not finite, the others
mean nothing, but are finite."""
LOG_Z: Final = 11
"""Row of the log of the normaliser of the logits; not finite where they are unusable."""
CHOSEN: Final = 12
"""Row of the logit of the chosen token, NaN without one."""
ROWS: Final = 13

PER_TOKEN: Final = 4
"""Metrics of a token; pooled, each has two columns: mean over the tokens and largest."""
OF_ALL, OF_BINS = 0, 8
"""First columns of what is pooled over all classes, and over the bins; NaN where unusable."""
MASS, ALPHA, OUTSIDE, PRINT, BAD, FITTING = range(16, 22)
"""Columns of: the smallest share of the bins (1 where all classes are bins); the chosen tokens'
geometric mean probability; the number of tokens outside the bins, NaN for none; a fingerprint of
the logits, below 2^52; the number of tokens with unusable logits; whether all ids are classes, NaN
without ids. Where ``BAD`` is not 0, the columns before it are NaN."""
POOLED: Final = 22

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
PRINTED: Final = slice(WEIGHTED, LOG_Z + 1)
"""Rows that the fingerprint is of, and by what they are multiplied; the largest logit is in log Z."""
MULTIPLIERS: Final = np.array((M0, M1, M2, M3, 0, M4, M5), dtype=u64)
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
    """Return the first place of the largest logit; NaN and +inf win, a NaN with its sign set loses.

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


def sum_up(row: Any, log_v: float, table: Any, i: int) -> None:
    """Write one token's column of the table."""
    v = len(row)
    at = find_largest(row)
    largest = row[at]
    table[WEIGHTED, i], table[SQUARES, i], table[Z, i], table[SECOND, i] = 0.0, 1.0, 1.0, 0.0
    table[LARGEST, i], table[TOP, i] = largest, at
    table[ENTROPY, i] = table[GINI, i] = table[TOP_PROBABILITY, i] = table[MARGIN, i] = nan
    table[LOG_Z, i], table[CHOSEN, i], table[SHARE, i] = largest, nan, nan
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
        table[LARGEST, i] = table[LOG_Z, i] = nan
        return
    second = 1.0 if ties > 1 else f64(power_of_e(i32(nearest).view(f32)))
    p1, log_z = 1.0 / z, log(z)
    table[WEIGHTED, i], table[SQUARES, i], table[Z, i] = weighted, squares, z
    table[SECOND, i] = second
    scale = v / (v - 1.0)
    table[ENTROPY, i] = min(max((log_z - weighted * p1) / log_v, 0.0), 1.0)
    table[GINI, i] = min(max((1.0 - squares * p1 * p1) * scale, 0.0), 1.0)
    table[TOP_PROBABILITY, i] = min(max(1.0 - (p1 - 1.0 / v) * scale, 0.0), 1.0)
    table[MARGIN, i] = min(max(1.0 - (p1 - second * p1), 0.0), 1.0)
    table[LOG_Z, i] = log_z + largest


def pool_metrics(table: Any, begin: int, tokens: int, out: Any, column: int) -> None:
    """Write mean and largest over some tokens of each metric."""
    for k in range(PER_TOKEN):
        total = largest = 0.0
        for i in range(begin, begin + tokens):
            value = table[ENTROPY + k, i]
            total += value
            largest = max(largest, value)
        out[column + 2 * k], out[column + 2 * k + 1] = total / tokens, largest


def fingerprint(table: Any, tokens: int) -> float:
    """Return an integer below 2^52 that tells the sums of one group apart from others."""
    state = u64(0)
    for i in range(tokens):
        mixed = u64(
            f64(table[WEIGHTED, i]).view(u64) * M0
            + f64(table[SQUARES, i]).view(u64) * M1
            + f64(table[Z, i]).view(u64) * M2
            + f64(table[SECOND, i]).view(u64) * M3
            + f64(table[TOP, i]).view(u64) * M4
            + f64(table[LOG_Z, i]).view(u64) * M5
        )
        state = u64(state * STEP + mixed)
    return f64(u64(u64(u64(state ^ u64(state >> HALF)) * STEP) >> LAST))


def pool_bins(table: Any, low: int, high: int, ids: Any, out: Any) -> None:
    """Write what is pooled over the bins, which stand in the second half of the table.

    Args:
        table: ``(13, 2 N)``.
        low: the first bin's class ...
        high: ... and the one after the last.
        ids: ``(N,)`` columns of the chosen tokens, or none.
        out: ``(22,)`` written to.
    """
    tokens = table.shape[1] // 2
    outside = hollow = 0
    for i in range(tokens):
        hollow += not isfinite(table[LARGEST, tokens + i])
        beside = not low <= table[TOP, i] < high
        if len(ids) > 0:
            beside = beside or not low <= ids[i] < high
        outside += beside
    if outside > 0:
        out[OUTSIDE] = outside
    out[MASS] = 0.0
    if hollow == 0:
        pool_metrics(table, tokens, tokens, out, OF_BINS)
        least = 1.0
        for i in range(tokens):
            share = min(exp(table[LOG_Z, tokens + i] - table[LOG_Z, i]), 1.0)
            table[SHARE, i] = share
            least = min(least, share)
        out[MASS] = least


def pool(table: Any, ids: Any, low: int, high: int, out: Any) -> None:
    """Write what is pooled over one group's tokens, all of them usable.

    Args:
        table: ``(13, N)``, or ``(13, 2 N)`` where the second half is of the bins.
        ids: ``(N,)`` columns of the chosen tokens, or none.
        low: the action bins' first class ...
        high: ... and the one after their last; 0 where they are not looked at apart.
        out: the columns, written to.
    """
    tokens = table.shape[1] if high == 0 else table.shape[1] // 2
    out[PRINT] = fingerprint(table, tokens)
    pool_metrics(table, 0, tokens, out, OF_ALL)
    if high > 0:
        pool_bins(table, low, high, ids, out)
    else:
        for k in range(2 * PER_TOKEN):
            out[OF_BINS + k] = out[OF_ALL + k]
        out[MASS] = 1.0
    if len(ids) > 0:
        total = 0.0
        for i in range(tokens):
            # Token by token, as huge logits swallow the others in a sum; min() keeps the compiler,
            # which may take sums in any order, from adding them up apart.
            total += min(table[CHOSEN, i] - table[LOG_Z, i], 0.0)
        out[ALPHA] = min(exp(total / tokens), 1.0)


def digest(logits: Any, ids: NDArray[np.int64], low: int, high: int, out: FloatArray) -> None:
    """Sum up the logits of G groups of N tokens, and pool them within each group.

    Args:
        logits: ``(G N, V)`` float32, contiguous.
        ids: ``(G N,)`` columns of the chosen tokens, or none; what is no column is seen.
        low: the action bins' first class ...
        high: ... and the one after their last; 0 where they are not looked at apart.
        out: ``(G, 22 + R W)`` the pooled columns, then the first R rows of each group's table, W
            long: N, or 2 N where the second half is of the bins. Written to.
    """
    groups = len(out)
    tokens = len(logits) // groups
    v = logits.shape[1]
    width = tokens if high == 0 else 2 * tokens
    log_v, log_bins = log(v), log(max(high - low, 2))
    table = np.empty((ROWS, width))
    for g in range(groups):
        pooled = out[g]
        for k in range(POOLED):
            pooled[k] = nan
        chosen = ids[g * tokens : g * tokens + tokens] if len(ids) > 0 else ids
        bad, fitting = 0, True
        for i in range(tokens):
            row = logits[g * tokens + i]
            sum_up(row, log_v, table, i)
            bad += not isfinite(table[LARGEST, i])
            if high - low == v:
                for k in range(ROWS):
                    table[k, tokens + i] = table[k, i]
            elif high > 0:
                sum_up(row[low:high], log_bins, table, tokens + i)
            if len(chosen) > 0:
                fits = 0 <= chosen[i] < v
                fitting = fitting and fits
                if fits:
                    table[CHOSEN, i] = row[chosen[i]]
        pooled[BAD] = bad
        if len(chosen) > 0:
            pooled[FITTING] = fitting
        if bad == 0:
            pool(table, chosen if fitting else chosen[:0], low, high, pooled)
        for k in range((len(pooled) - POOLED) // width):
            for i in range(width):
                pooled[POOLED + k * width + i] = table[k, i]


@cache
def load_kernel() -> Kernel | None:
    """Return :func:`digest` compiled, None without numba."""
    if not usable():
        return None
    from numba.extending import register_jitable

    for helper in (sum_up, pool_metrics, fingerprint, pool_bins, pool):
        register_jitable(fastmath=set(FASTMATH))(helper)
    for small in (power_of_e, find_largest):
        register_jitable(inline="always", fastmath=set(FASTMATH))(small)
    return compile_for("void(f4[:,::1], i8[::1], i8, i8, f8[:,::1])", digest, in_lanes=True)
