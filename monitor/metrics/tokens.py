"""Token metrics: how undecided the policy was about each action token (spec 1).

Valle et al., "Evaluating Uncertainty and Quality of Visual Language Action-enabled Robots",
arXiv 2507.17049. All are higher = less certain, in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from math import log
from typing import Any, Final

import numpy as np

from monitor.metrics.compiled import compile_for
from monitor.records import FloatArray

NAMES: Final = ("TB-E", "TB-D", "TB-TP", "TB-PCS")
WEIGHTED, SQUARES, Z, SECOND, LARGEST, TOP = range(6)
"""Rows of a table of sums: sum e log e, sum e^2, sum e, second e, largest logit, its class; with
e = exp(logit - largest), so that the largest e is 1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenView:
    """The metrics of R tokens.

    Attributes:
        values: ``(4, R)``, rows in the order of :data:`NAMES`.
        log_z: ``(R,)`` log of the normaliser of the logits; not finite where they are unusable.
    """

    values: FloatArray
    log_z: FloatArray


def token_view(table: FloatArray, sizes: tuple[int, ...]) -> TokenView:
    """Return TB-E, TB-D, TB-TP and TB-PCS of tokens whose sums are known.

    Args:
        table: ``(6, R)`` as :func:`monitor.metrics.sums.reduce_rows` gives it.
        sizes: number of classes of each of the equally long parts of R, mostly just ``(V,)``.

    >>> flat = np.array([[0.0], [4.0], [4.0], [1.0], [0.0], [0.0]])
    >>> token_view(flat, (4,)).values.tolist()
    [[1.0], [1.0], [1.0], [1.0]]
    """
    offset, factor = _affine(sizes, table.shape[1])
    values, log_z = np.empty((4, table.shape[1])), np.empty(table.shape[1])
    (_compiled() or _measure)(table, offset, factor, values, log_z)
    return TokenView(values=values, log_z=log_z)


def _measure(
    table: FloatArray, offset: FloatArray, factor: FloatArray, values: FloatArray, log_z: FloatArray
) -> None:
    """Write the metrics, one or many columns at a time; numba compiles it as it stands."""
    p1 = 1.0 / table[2]  # the probability of the likeliest class, whose e is 1
    log_z[:] = np.log(table[2])
    values[0] = table[0] * p1 - log_z
    values[1] = table[1] * p1 * p1
    values[2] = p1
    values[3] = table[3] * p1 - p1
    # Rounding may leave the interval by an ulp of the logits' type.
    values[:] = np.minimum(np.maximum(values * factor + offset, 0.0), 1.0)
    log_z += table[4]


@cache
def _compiled() -> Any:
    return compile_for("void(f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[::1])", _measure)


@lru_cache(maxsize=8)
def _affine(sizes: tuple[int, ...], columns: int) -> tuple[FloatArray, FloatArray]:
    """Return offset and factor, ``(4, R)``, from -H, sum p^2, p1, p2 - p1 to the metrics."""
    offset, factor = np.empty((2, 4, len(sizes)))
    for i, v in enumerate(sizes):
        scale = 1.0 - 1.0 / v
        offset[:, i] = 0.0, 1.0 / scale, 1.0 + 1.0 / v / scale, 1.0
        factor[:, i] = -1.0 / log(v), -1.0 / scale, -1.0 / scale, 1.0
    each = columns // len(sizes)
    return offset.repeat(each, axis=1), factor.repeat(each, axis=1)
