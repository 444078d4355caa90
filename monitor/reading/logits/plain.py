"""Logits without the compiled pass: the formulas by numpy, and tokens pooled by numpy.

The pooling serves logits on another device too, whose tokens are measured there.
"""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.token_uncertainty import TOKEN_METRICS, softmax
from monitor.reading.logits.compiled import (
    METRICS,
    SUMMARY,
    SUMMARY_SIZE,
    TOKEN,
    TOKEN_SIZE,
    floats,
)
from monitor.records import FloatArray

__all__ = ["MEASURED", "measure", "pool"]

MEASURED: Final = floats(*METRICS, "log_z", "top")
"""Record of a token: its metrics, the log of the normaliser (not finite where the logits are
unusable) and the likeliest class."""


def measure(logits: NDArray[Any]) -> NDArray[Any]:
    """Return ``(R,)`` records of :data:`MEASURED` of ``(R, V)`` logits.

    >>> measure(np.zeros((1, 4)))["entropy"].tolist()
    [1.0]
    """
    logits = np.ascontiguousarray(logits)
    out = np.empty(len(logits), MEASURED)
    p = softmax(logits)
    for name, formula in zip(METRICS, TOKEN_METRICS.values(), strict=True):
        out[name] = formula(p)
    out["top"] = logits.argmax(axis=1)
    out["log_z"] = logits.max(axis=1) - np.log(p.max(axis=1), dtype=np.float64)
    return out


def pool(
    whole: NDArray[Any],
    bins: NDArray[Any] | None,
    span: tuple[int, int] | None,
    ids: NDArray[np.int64] | None,
    chosen: FloatArray | None,
    v: int,
    groups: int,
) -> tuple[FloatArray, FloatArray]:
    """Pool the tokens of each of G groups, as the compiled pass does.

    Args:
        whole: ``(G N,)`` records of :data:`MEASURED` over all classes.
        bins: The same over the action bins, or None without a range of bins.
        span: Half-open range of the bins within V.
        ids: ``(G N,)`` classes of the chosen tokens, if they are classes.
        chosen: ``(G N,)`` logits of the chosen tokens.
        v: Number of classes.
        groups: G.

    Returns:
        ``(G, 22)`` numbers, one ``SUMMARY`` per group, and ``(G, W, 5)``, one ``TOKEN`` per token
        (see :mod:`monitor.reading.logits.compiled`).
    """
    whole = whole.reshape(groups, -1)
    count = whole.shape[1]
    summaries = np.full((groups, SUMMARY_SIZE), np.nan)
    rows = np.full((groups, count if bins is None else 2 * count, TOKEN_SIZE), np.nan)
    out, tokens = summaries.view(SUMMARY)[:, 0], rows.view(TOKEN)[..., 0]
    _pool_metrics(whole, tokens[:, :count], out["whole"])
    out["fingerprint"] = [crc32(one.tobytes()) for one in whole]
    fit = None
    if ids is not None and chosen is not None:
        ids = ids.reshape(groups, -1)
        fit = np.asarray(((ids >= 0) & (ids < v)).all(axis=1))
        # Token by token, as the sums of huge logits may overflow.
        mean = (chosen.reshape(groups, -1) - whole["log_z"]).sum(axis=1) / count
        out["alpha"] = np.where(fit, np.minimum(np.exp(mean), 1.0), np.nan)
        ids = np.where(fit[:, None], ids, 0 if span is None else span[0])
    if bins is None or span is None:
        out["bins"], out["action_mass"] = out["whole"], 1.0
    else:
        _pool_bins(whole, bins.reshape(groups, -1), tokens, out)
        strays = np.zeros(whole.shape, dtype=bool)
        for classes in (whole["top"], ids):
            if classes is not None:
                strays |= (classes < span[0]) | (classes >= span[1])
        outside = strays.sum(axis=1)
        out["tokens_outside"] = np.where(outside > 0, outside, np.nan)
    unusable = (~np.isfinite(whole["log_z"])).sum(axis=1)
    summaries[unusable > 0] = np.nan
    out["unusable"] = unusable
    if fit is not None:
        out["ids_fit"] = fit
    return summaries, rows


def _pool_bins(
    whole: NDArray[Any], bins: NDArray[Any], tokens: NDArray[Any], out: NDArray[Any]
) -> None:
    """Write what is pooled over the bins; a token without any finite bin leaves it unknown."""
    count = whole.shape[1]
    _pool_metrics(bins, tokens[:, count:], out["bins"])
    empty = ~np.isfinite(bins["log_z"]).all(axis=1)
    out["bins"][empty] = np.full(1, np.nan).astype(out["bins"].dtype)
    share = np.minimum(np.exp(bins["log_z"] - whole["log_z"]), 1.0)
    tokens["bin_share"][:, :count] = np.where(empty[:, None], np.nan, share)
    out["action_mass"] = np.where(empty, 0.0, share.min(axis=1))


def _pool_metrics(part: NDArray[Any], tokens: NDArray[Any], out: NDArray[Any]) -> None:
    for name in METRICS:
        values = np.ascontiguousarray(part[name])
        tokens[name] = values
        out[name], out[f"{name}_max"] = values.sum(axis=1) / values.shape[1], values.max(axis=1)
