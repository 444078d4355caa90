"""Token metrics: how undecided the policy was about each action token (spec 1).

Valle et al., "Evaluating Uncertainty and Quality of Visual Language Action-enabled Robots",
arXiv 2507.17049. All are higher = less certain, in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.records import FloatArray

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
    return Peaks(top=top, value=logits[np.arange(len(logits)), top])


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
    n, v = logits.shape
    shifted = logits - peak.value[:, None]
    # Below e^-700 a class counts for nothing; the floor keeps 0 * -inf = NaN out.
    np.maximum(shifted, -700.0, out=shifted)
    e = np.exp(shifted)
    z = e.sum(axis=1, dtype=np.float64)
    # H = log Z - sum(e * shifted) / Z needs no p of its own.
    weighted = np.einsum("nv,nv->n", e, shifted).astype(np.float64)
    squares = np.einsum("nv,nv->n", e, e).astype(np.float64)
    e[np.arange(n), peak.top] = 0.0
    p1 = 1.0 / z
    p2 = e.max(axis=1) * p1
    log_z = np.log(z)
    scale = 1.0 - 1.0 / v
    values = np.empty((4, n))
    values[0] = 1.0 - (p1 - 1.0 / v) / scale
    values[1] = 1.0 - (p1 - p2)
    values[2] = (1.0 - squares * p1 * p1) / scale
    values[3] = (log_z - weighted * p1) / log(v)
    # Rounding may leave the interval by an ulp of the logits' type.
    np.maximum(values, 0.0, out=values)
    np.minimum(values, 1.0, out=values)
    return TokenView(values=values, log_z=log_z + peak.value)
