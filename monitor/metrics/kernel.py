"""One compiled pass over float32 logits, where numba is installed (extra ``fast``).

The function below is plain Python, and slow as such; numba turns its loops into vector code that
reads every logit once from memory and twice from the cache. The exponential is Cephes' expf: Cody
and Waite's reduction by multiples of log 2, then a polynomial, 1 ulp.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.compiled import compile_for
from monitor.records import FloatArray

Kernel = Callable[[Any, NDArray[np.int64], int, int, FloatArray], None]

CHUNK: Final = 1024
"""Logits whose exponentials lie in the innermost cache, and are summed up in float32."""
f32, i32 = np.float32, np.int32
LEAST: Final = f32(-87.0)
"""Stands for the logarithm of 0: the last integer whose e^x is a normal number."""
LOG2_E: Final = f32(1.4426950408889634)
LOG_2_HIGH: Final = f32(0.693359375)
LOG_2_LOW: Final = f32(-2.12194440e-4)
ROUND: Final = f32(12582912.0)
"""1.5 x 2^23: adding it leaves the nearest integer in the lowest bits."""
ROUND_BITS: Final = i32(0x4B400000)
P0: Final = f32(1.9875691500e-4)
P1: Final = f32(1.3981999507e-3)
P2: Final = f32(8.3334519073e-3)
P3: Final = f32(4.1665795894e-2)
P4: Final = f32(1.6666665459e-1)
P5: Final = f32(5.0000001201e-1)
ONE: Final = f32(1.0)
ZERO: Final = f32(0.0)
BIAS: Final = i32(127)
MANTISSA: Final = i32(23)
SIGN: Final = i32(31)
MAGNITUDE: Final = i32(0x7FFFFFFF)
LOWEST: Final = i32(-0x80000000)


def reduce(logits: Any, ids: NDArray[np.int64], low: int, high: int, table: FloatArray) -> None:
    """Write the table of :mod:`monitor.metrics.tokens`.

    Args:
        logits: ``(R, V)`` float32, contiguous.
        ids: ``(R,)`` columns of the chosen tokens, or none.
        low: the action bins' first class ...
        high: ... and the one after their last; 0 where they are not looked at apart.
        table: ``(12, R)``, or ``(12, 2 R)`` where the second half is of the bins; written to.
    """
    count = logits.shape[0]
    log_e, e = np.empty(CHUNK, f32), np.empty(CHUNK, f32)
    power, scale = np.empty(CHUNK, f32), np.empty(CHUNK, f32)
    e_bits, power_bits, scale_bits = e.view(i32), power.view(i32), scale.view(i32)
    for i in range(count if high == 0 else 2 * count):
        row = logits[i] if i < count else logits[i - count, low:high]
        v = len(row)
        bits = row.view(i32)
        # As integers floats keep their order once the negative ones are turned round; NaN and
        # +inf come out above all numbers.
        best = LOWEST
        for j in range(v):
            key = i32(bits[j] ^ i32(i32(bits[j] >> SIGN) & MAGNITUDE))
            best = key if key > best else best
        best = i32(best ^ i32(i32(best >> SIGN) & MAGNITUDE))
        at = 0
        while bits[at] != best:
            at += 1
        largest = row[at]
        table[0, i], table[1, i], table[2, i], table[3, i] = 0.0, 1.0, 1.0, 0.0
        table[4, i], table[5, i] = largest, at
        table[6, i] = table[7, i] = table[8, i] = table[9, i] = 0.0
        table[10, i], table[11, i] = largest, np.nan
        if i < len(ids):
            table[11, i] = row[ids[i]]
        if not np.isfinite(largest):
            continue
        z = weighted = squares = np.float64(0.0)
        second_bits = i32(0)
        for begin in range(0, v, CHUNK):
            size = min(CHUNK, v - begin)
            for j in range(size):
                x = row[begin + j] - largest
                x = LEAST if x < LEAST else x
                log_e[j] = x
                power[j] = x * LOG2_E + ROUND
            for j in range(size):
                n = f32(i32(power_bits[j] - ROUND_BITS))
                r = log_e[j] - n * LOG_2_HIGH
                r = r - n * LOG_2_LOW
                y = ((((P0 * r + P1) * r + P2) * r + P3) * r + P4) * r + P5
                e[j] = y * (r * r) + r + ONE
                scale_bits[j] = i32(i32(power_bits[j] + BIAS) << MANTISSA)
            part, part_weighted, part_squares = ZERO, ZERO, ZERO
            for j in range(size):
                each = e[j] * scale[j]
                e[j] = each
                part += each
                part_weighted += each * log_e[j]
                part_squares += each * each
            if begin <= at < begin + size:
                e[at - begin] = ZERO
            for j in range(size):
                second_bits = e_bits[j] if e_bits[j] > second_bits else second_bits
            z += part
            weighted += part_weighted
            squares += part_squares
        e_bits[0] = second_bits
        if np.isnan(z):  # a NaN with its sign set comes out below all numbers
            table[4, i] = table[10, i] = np.nan
            continue
        table[0, i], table[1, i], table[2, i], table[3, i] = weighted, squares, z, e[0]
        p1, log_z, scale_v = 1.0 / z, log(z), 1.0 - 1.0 / v
        table[6, i] = min(max((log_z - weighted * p1) / log(v), 0.0), 1.0)
        table[7, i] = min(max((1.0 - squares * p1 * p1) / scale_v, 0.0), 1.0)
        table[8, i] = min(max(1.0 - (p1 - 1.0 / v) / scale_v, 0.0), 1.0)
        table[9, i] = min(max(1.0 - (p1 - e[0] * p1), 0.0), 1.0)
        table[10, i] = log_z + largest


@cache
def load_kernel() -> Kernel | None:
    """Return :func:`reduce` compiled, None without numba."""
    return compile_for("void(f4[:,::1], i8[::1], i8, i8, f8[:,::1])", reduce, in_lanes=True)
