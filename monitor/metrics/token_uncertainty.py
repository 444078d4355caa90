"""Token metrics: how undecided the policy was about each action token.

Valle et al., "Evaluating Uncertainty and Quality of Visual Language Action-enabled Robots",
arXiv 2507.17049. Each is in [0, 1], and higher means less certain. The monitor computes the same
in one pass over the logits, see :mod:`monitor.reading.logits`; these are the formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.stage import MetricInfo
from monitor.stage.info import DARABI, OWN

__all__ = [
    "INFOS",
    "TOKEN_METRICS",
    "softmax",
    "token_entropy",
    "token_gini",
    "token_margin",
    "token_top_probability",
]

Probabilities = NDArray[np.floating[Any]]
"""``(N, V)`` probabilities of V classes for each of N tokens."""


def softmax(logits: NDArray[Any]) -> Probabilities:
    """Return the probabilities of ``(N, V)`` logits; a class of -inf has none.

    >>> softmax(np.log([[1.0, 3.0]])).round(12).tolist()
    [[0.25, 0.75]]
    """
    # Infinities are shifted apart from here on: a row without a finite largest logit becomes NaN.
    with np.errstate(invalid="ignore", over="ignore"):
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))


def token_entropy(p: Probabilities) -> NDArray[Any]:
    """Return TB-E, ``(N,)``: the entropy over that of the uniform distribution, log V.

    >>> token_entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    least = np.finfo(p.dtype).tiny  # 0 log 0 counts as 0
    return _unit(-(p * np.log(np.maximum(p, least))).sum(axis=1) / np.log(p.shape[1]))


def token_gini(p: Probabilities) -> NDArray[Any]:
    """Return TB-D, ``(N,)``: DeepGini, 1 - sum p^2, over its largest value, 1 - 1/V.

    >>> token_gini(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    return _unit((1.0 - (p * p).sum(axis=1)) / (1.0 - 1.0 / p.shape[1]))


def token_top_probability(p: Probabilities) -> NDArray[Any]:
    """Return TB-TP, ``(N,)``: 1 - the largest probability, scaled from [1/V, 1] to [0, 1].

    >>> token_top_probability(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    uniform = 1.0 / p.shape[1]
    return _unit(1.0 - (p.max(axis=1) - uniform) / (1.0 - uniform))


def token_margin(p: Probabilities) -> NDArray[Any]:
    """Return TB-PCS, ``(N,)``: 1 - the difference of the two largest probabilities.

    >>> token_margin(np.array([[0.5, 0.5], [0.75, 0.25]])).tolist()
    [1.0, 0.5]
    """
    two = np.partition(p, -2, axis=1)[:, -2:]
    return _unit(1.0 - (two[:, 1] - two[:, 0]))


def _unit(values: NDArray[Any]) -> NDArray[Any]:
    """Return values without what rounding adds beyond [0, 1]."""
    return np.asarray(np.minimum(np.maximum(values, 0.0), 1.0))


TOKEN_METRICS: Final[dict[str, Callable[[Probabilities], NDArray[Any]]]] = {
    "TB-E": token_entropy,
    "TB-D": token_gini,
    "TB-TP": token_top_probability,
    "TB-PCS": token_margin,
}
"""Formulas by metric id."""

TYPICAL: Final = {
    "TB-E": (0.06, 0.20, 0.35),
    "TB-TP": (0.15, 0.45, 0.65),
    "TB-D": (0.15, 0.45, 0.65),
    "TB-PCS": (0.25, 0.6, 0.8),
}
"""Median, 90 % and 99 % quantile in healthy tabletop pick-and-place."""


def _infos() -> list[MetricInfo]:
    names = {
        "TB-TP": "1 - probability of the likeliest token, normalised",
        "TB-PCS": "1 - margin between the two likeliest tokens",
        "TB-D": "DeepGini of the token distribution",
        "TB-E": "entropy of the token distribution",
    }
    supports = {"": "full vocabulary", "_bins": "action bins alone"}
    pools = {"": "mean over tokens", "_max": "largest of the tokens"}
    return [
        MetricInfo(
            id=f"{name}{support}{pool}",
            meaning=f"{meaning}; {over}; {how}",
            needs=("token_logits",),
            typical=TYPICAL[name],
        )
        for name, meaning in names.items()
        for support, over in supports.items()
        for pool, how in pools.items()
    ]


BINS: Final = ("token_logits", "action_token_range")
"""Fields that the metrics of the action bins need."""
INFOS: Final = (
    *_infos(),
    MetricInfo(
        id="action_mass",
        meaning="least probability that a token's bins hold together; higher is better",
        needs=BINS,
        source=OWN,
    ),
    MetricInfo(
        id="tokens_outside",
        meaning="tokens whose likeliest or chosen class is not an action bin",
        high=None,
        needs=BINS,
        source=OWN,
    ),
    MetricInfo(
        id="alpha",
        meaning="geometric mean probability of the chosen tokens; higher is better",
        needs=("token_logits", "token_ids"),
        source=DARABI,
    ),
)
