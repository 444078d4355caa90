"""Token metrics: how undecided the policy was about each action token (spec 1).

Valle et al., "Evaluating Uncertainty and Quality of Visual Language Action-enabled Robots",
arXiv 2507.17049. All are higher = less certain, in [0, 1].
"""

from __future__ import annotations

from math import log
from typing import Final

import numpy as np

from monitor.records import FloatArray

NAMES: Final = ("TB-E", "TB-D", "TB-TP", "TB-PCS")
WEIGHTED, SQUARES, Z, SECOND, LARGEST, TOP = range(6)
"""First rows of a table: sum e log e, sum e^2, sum e, second e, largest logit, its class; with
e = exp(logit - largest), so that the largest e is 1."""
SUMS: Final = slice(6)
VALUES: Final = slice(6, 10)
"""Rows of the metrics, in the order of :data:`NAMES`."""
LOG_Z: Final = 10
"""Row of the log of the normaliser of the logits; not finite where they are unusable."""
CHOSEN: Final = 11
"""Row of the logit of the chosen token, NaN without one."""
ROWS: Final = 12


def affine(v: int) -> tuple[FloatArray, FloatArray]:
    """Return offset and factor, ``(4,)``, from -H, sum p^2, p1, p2 - p1 of V classes to the metrics."""
    scale = 1.0 - 1.0 / v
    offset = np.array([0.0, 1.0 / scale, 1.0 + 1.0 / v / scale, 1.0])
    factor = np.array([-1.0 / log(v), -1.0 / scale, -1.0 / scale, 1.0])
    return offset, factor


def measure(table: FloatArray, v: int) -> None:
    """Write TB-E, TB-D, TB-TP, TB-PCS and log Z into a table whose sums are known.

    Args:
        table: ``(12, R)``, rows as named above.
        v: number of classes.

    >>> table = np.zeros((ROWS, 1))
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
    table[VALUES] = np.minimum(np.maximum(values, 0.0), 1.0)
    table[LOG_Z] = log_z + table[LARGEST]
