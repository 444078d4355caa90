"""Token metrics: how undecided the policy was about each action token (spec 1).

Valle et al., "Evaluating Uncertainty and Quality of Visual Language Action-enabled Robots",
arXiv 2507.17049. All are higher = less certain, in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isnan, log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.records import FloatArray

LARGE: Final = 4096
NAMES = ("TB-TP", "TB-PCS", "TB-D", "TB-E")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Peaks:
    """The largest logit of each token.

    Attributes:
        top: ``(N,)`` its class.
        value: ``(N,)`` its logit; not finite exactly where a row holds NaN, +inf or only -inf.
    """

    top: NDArray[np.intp]
    value: NDArray[Any]


def peaks(logits: NDArray[Any]) -> Peaks:
    """Return the largest logit per row of ``(N, V)``; argmax lets NaN and +inf win."""
    top = logits.argmax(axis=1)
    return Peaks(top=top, value=logits[_rows(len(logits)), top])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenView:
    """The metrics of N tokens.

    Attributes:
        values: ``(4, N)``, rows in the order of :data:`NAMES`.
        log_z: ``(N,)`` log of the normaliser of the logits.
    """

    values: FloatArray
    log_z: FloatArray


def token_metrics(logits: NDArray[Any], peak: Peaks) -> TokenView:
    """Return TB-TP, TB-PCS, TB-D and TB-E per token.

    Args:
        logits: ``(N, V)`` float32 or float64, V >= 2. -inf is a masked class: p = 0 and
            0 log 0 = 0.
        peak: of the same logits, all finite.

    >>> flat = np.zeros((1, 4))
    >>> token_metrics(flat, peaks(flat)).values.tolist()
    [[1.0], [1.0], [1.0], [1.0]]
    """
    stats, z = row_sums(logits, peak)
    return view_of_sums(stats, z, peak.value, logits.shape[1])


def row_sums(logits: NDArray[Any], peak: Peaks) -> tuple[FloatArray, FloatArray]:
    """Return ``(4, N)``, rows 1 to 3 second e, sum e^2, sum e log e, and ``(N,)`` sum e.

    e = exp(logit - largest), so that the largest e is 1.
    """
    n, v = logits.shape
    stats = np.empty((4, n))
    return stats, (_sums if v < LARGE else _sums_by_row)(logits, peak, stats)


def view_of_sums(stats: FloatArray, z: FloatArray, largest: NDArray[Any], v: int) -> TokenView:
    """Return the metrics of what :func:`row_sums` gave; ``stats`` becomes part of it.

    Args:
        stats: ``(4, N)``, row 0 is written.
        z: ``(N,)``.
        largest: ``(N,)`` logits.
        v: V.
    """
    # 1 / Z is the probability of the likeliest class, whose e is 1.
    p1 = 1.0 / z
    log_z = -np.log(p1)
    stats[0] = 1.0
    stats *= p1
    stats[1] -= p1
    stats[2] *= p1
    stats[3] -= log_z
    offset, factor = _affine(v)
    stats *= factor
    stats += offset
    # Rounding may leave the interval by an ulp of the logits' type.
    np.maximum(stats, 0.0, out=stats)
    np.minimum(stats, 1.0, out=stats)
    return TokenView(values=stats, log_z=log_z + largest)


def _sums(logits: NDArray[Any], peak: Peaks, out: FloatArray) -> FloatArray:
    """Write max of e but for the top, sum e^2 and sum e log e into rows 1 to 3; return sum e."""
    shifted = logits - peak.value[:, None]
    e = np.exp(shifted)
    column = shifted[:, :, None]
    with np.errstate(invalid="ignore"):
        weighted = (e[:, None, :] @ column)[:, 0, 0]
    if isnan(sum(weighted.tolist())):
        # A masked class gives 0 * -inf = NaN; any finite stand-in gives the 0 that is meant.
        np.maximum(shifted, -700.0, out=shifted)
        weighted = (e[:, None, :] @ column)[:, 0, 0]
    out[3] = weighted
    out[2] = (e[:, None, :] @ e[:, :, None])[:, 0, 0]
    # One product per row, not one for all: a row must not depend on how many are with it.
    z: FloatArray = (e[:, None, :] @ _ones(e.shape[1], e.dtype))[:, 0, 0].astype(np.float64)
    e[_rows(len(e)), peak.top] = 0.0
    out[1] = np.maximum.reduce(e, axis=1)
    return z


def _sums_by_row(logits: NDArray[Any], peak: Peaks, out: FloatArray) -> FloatArray:
    """As :func:`_sums`; row by row a large vocabulary stays in the cache between the passes."""
    n, v = logits.shape
    shifted, e = np.empty((2, v), dtype=logits.dtype)
    ones = _ones(v, logits.dtype)[:, 0]
    z = np.empty(n)
    with np.errstate(invalid="ignore"):
        for i, top in enumerate(peak.top.tolist()):
            np.subtract(logits[i], peak.value[i], out=shifted)
            np.exp(shifted, out=e)
            weighted = e.dot(shifted)
            if isnan(weighted):
                np.maximum(shifted, -700.0, out=shifted)
                weighted = e.dot(shifted)
            out[3, i] = weighted
            out[2, i] = e.dot(e)
            z[i] = e.dot(ones)
            e[top] = 0.0
            out[1, i] = e.max()
    return z


@lru_cache(maxsize=8)
def _rows(n: int) -> NDArray[np.intp]:
    return np.arange(n)


@lru_cache(maxsize=8)
def _ones(n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.ones((n, 1), dtype=dtype)


@lru_cache(maxsize=8)
def _affine(v: int) -> tuple[FloatArray, FloatArray]:
    """Return offset and factor, ``(4, 1)``, from p1, p2 - p1, sum p^2, -H to the metrics."""
    scale = 1.0 - 1.0 / v
    offset = np.array([1.0 + 1.0 / v / scale, 1.0, 1.0 / scale, 0.0])
    factor = np.array([-1.0 / scale, 1.0, -1.0 / scale, -1.0 / log(v)])
    return offset[:, None], factor[:, None]
