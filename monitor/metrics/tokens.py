"""Token metrics: how undecided the policy was about each action token (spec 1).

Valle et al., "Evaluating Uncertainty and Quality of Visual Language Action-enabled Robots",
arXiv 2507.17049. All are higher = less certain, in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Final

import numpy as np

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
    z = table[Z]
    p1 = 1.0 / z  # the probability of the likeliest class, whose e is 1
    log_z = np.log(z)
    values: FloatArray = table[:4] * p1
    values[WEIGHTED] -= log_z
    values[SQUARES] *= p1
    values[Z] = p1
    values[SECOND] -= p1
    offset, factor = _affine(sizes, table.shape[1])
    values *= factor
    values += offset
    # Rounding may leave the interval by an ulp of the logits' type.
    np.maximum(values, 0.0, out=values)
    np.minimum(values, 1.0, out=values)
    log_z += table[LARGEST]
    return TokenView(values=values, log_z=log_z)


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
