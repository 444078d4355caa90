"""Token metrics: how undecided the policy was about each action token (spec 1).

Valle et al., "Evaluating Uncertainty and Quality of Visual Language Action-enabled Robots",
arXiv 2507.17049. All are higher = less certain, in [0, 1].
"""

from __future__ import annotations

from functools import lru_cache
from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.reading.logits.compiled import (
    ALPHA,
    BAD,
    CHOSEN,
    ENTROPY,
    FITTING,
    HALF,
    LARGEST,
    LAST,
    LOG_Z,
    MARGIN,
    MASS,
    MULTIPLIERS,
    OF_ALL,
    OF_BINS,
    OUTSIDE,
    POOLED,
    PRINT,
    PRINTED,
    SECOND,
    SHARE,
    SQUARES,
    STEP,
    TOP,
    WEIGHTED,
    Z,
)
from monitor.records import FloatArray

NAMES: Final = ("TB-E", "TB-D", "TB-TP", "TB-PCS")
SUMS: Final = slice(WEIGHTED, TOP + 1)
"""Rows of a table that hold its sums."""
VALUES: Final = slice(ENTROPY, MARGIN + 1)
"""Rows of the metrics, in the order of :data:`NAMES`."""


@lru_cache(maxsize=8)
def affine(v: int) -> tuple[FloatArray, FloatArray]:
    """Return offset and factor, ``(4,)``, from -H, sum p^2, p1, p2 - p1 of V classes to the metrics."""
    scale = 1.0 - 1.0 / v
    offset = np.array([0.0, 1.0 / scale, 1.0 + 1.0 / v / scale, 1.0])
    factor = np.array([-1.0 / log(v), -1.0 / scale, -1.0 / scale, 1.0])
    return offset, factor


def measure(table: FloatArray, v: int) -> None:
    """Write TB-E, TB-D, TB-TP, TB-PCS and log Z into a table whose sums are known.

    Args:
        table: ``(13, R)``, rows as named in :mod:`monitor.reading.logits.compiled`.
        v: number of classes.

    >>> table = np.zeros((13, 1))
    >>> table[SUMS, 0] = 0.0, 4.0, 4.0, 1.0, 0.0, 0.0
    >>> measure(table, 4)
    >>> table[VALUES, 0].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    offset, factor = affine(v)
    p1 = 1.0 / table[Z]  # the probability of the likeliest class, whose e is 1
    log_z = np.log(table[Z])
    parts = (
        table[WEIGHTED] * p1 - log_z,
        table[SQUARES] * p1 * p1,
        p1,
        table[SECOND] * p1 - p1,
    )
    values = np.stack(parts) * factor[:, None] + offset[:, None]
    # Rounding may leave the interval by an ulp of the logits' type.
    values = np.minimum(np.maximum(values, 0.0), 1.0)
    table[VALUES] = np.where(np.isfinite(table[LARGEST]), values, np.nan)
    table[LOG_Z] = log_z + table[LARGEST]


def pool(
    table: FloatArray,
    ids: NDArray[np.int64] | None,
    span: tuple[int, int] | None,
    *,
    groups: int,
    v: int,
) -> FloatArray:
    """Pool the tokens of each of G groups by numpy, as the compiled kernel does.

    Args:
        table: ``(13, G N)``, measured, or ``(13, 2 G N)`` with a span; its shares are written.
        ids: ``(G N,)`` columns of the chosen tokens, if they are columns.
        span: half-open range of the action bins within V.
        groups: G.
        v: number of classes.

    Returns:
        ``(G, 22)``, columns as named in :mod:`monitor.reading.logits.compiled`.
    """
    whole = table.reshape(len(table), 1 if span is None else 2, groups, -1)
    tokens = whole.shape[3]
    of_all, out = whole[:, 0], np.full((groups, POOLED), np.nan)
    bad = tokens - np.add.reduce(np.isfinite(of_all[LARGEST]), axis=1)
    _pool_metrics(of_all, out[:, OF_ALL:OF_BINS])
    out[:, PRINT] = fingerprint(of_all)
    picked = None if ids is None else ids.reshape(groups, tokens)
    # What stands for an unusable token is left out at the end.
    with np.errstate(over="ignore", invalid="ignore"):
        if picked is not None:
            fitting = np.logical_and.reduce((picked >= 0) & (picked < v), axis=1, keepdims=True)
            # Token by token, as the sums of huge logits may overflow.
            mean = (of_all[CHOSEN] - of_all[LOG_Z]).sum(axis=1, keepdims=True) / tokens
            out[:, FITTING] = fitting[:, 0]
            out[:, ALPHA] = np.where(fitting, np.minimum(np.exp(mean), 1.0), np.nan)[:, 0]
            picked = np.where(fitting, picked, 0 if span is None else span[0])
        if span is None:
            out[:, OF_BINS:MASS], out[:, MASS] = out[:, OF_ALL:OF_BINS], 1.0
        else:
            _pool_bins(whole, picked, span, out)
    if bad.any():
        out[bad > 0] = np.where(np.arange(POOLED) < BAD, np.nan, out[bad > 0])
    out[:, BAD] = bad
    return out


def _pool_metrics(part: FloatArray, out: FloatArray) -> None:
    """Write mean and maximum over tokens; tokens outermost, so that groups run innermost."""
    by_token = np.ascontiguousarray(part[VALUES].transpose(2, 0, 1))
    out[:, 0::2] = (np.add.reduce(by_token, axis=0) / len(by_token)).T
    out[:, 1::2] = np.maximum.reduce(by_token, axis=0).T


def _pool_bins(
    whole: FloatArray, picked: NDArray[np.int64] | None, span: tuple[int, int], out: FloatArray
) -> None:
    """Write what is pooled over the bins, which are the second part of ``(13, 2, G, N)``."""
    hollow = ~np.isfinite(whole[LARGEST, 1]).all(axis=1)
    _pool_metrics(whole[:, 1], out[:, OF_BINS:MASS])
    out[hollow, OF_BINS:MASS] = np.nan
    share = np.minimum(np.exp(whole[LOG_Z, 1] - whole[LOG_Z, 0]), 1.0)
    share[hollow] = np.nan
    whole[SHARE, 0] = share
    out[:, MASS] = np.where(hollow, 0.0, share.min(axis=1))
    beside = np.zeros(share.shape, dtype=bool)
    for classes in (whole[TOP, 0], picked):
        if classes is not None:
            beside |= (classes < span[0]) | (classes >= span[1])
    count = beside.sum(axis=1)
    out[:, OUTSIDE] = np.where(count > 0, count, np.nan)


def fingerprint(part: FloatArray) -> FloatArray:
    """Return ``(G,)`` integers below 2^52 that tell the sums of ``(13, G, N)`` tokens apart.

    >>> part = np.arange(13.0 * 2 * 3).reshape(13, 2, 3)
    >>> one, other = fingerprint(part).tolist()
    >>> one != other, max(one, other) < 2.0**52
    (True, True)
    """
    bits = part[PRINTED].view(np.uint64)
    mixed = np.add.reduce(bits * MULTIPLIERS[:, None, None], axis=0)
    state = np.add.reduce(mixed * _steps(mixed.shape[1]), axis=1)
    found: FloatArray = (((state ^ (state >> HALF)) * STEP) >> LAST).astype(np.float64)
    return found


@lru_cache(maxsize=8)
def _steps(tokens: int) -> NDArray[np.uint64]:
    """Return by what each token's share of a fingerprint is multiplied."""
    return np.power(STEP, np.arange(tokens, dtype=np.uint64)[::-1])
