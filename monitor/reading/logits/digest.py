"""One step's logits, or those of N environments, as token metrics: the way in to this folder."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.token_uncertainty import TOKEN_METRICS
from monitor.reading.arrays import to_array
from monitor.reading.logits.compiled import SUMMARY, SUMMARY_SIZE, TOKEN_SIZE, load_kernel
from monitor.reading.logits.device import measure_on_device, on_device
from monitor.reading.logits.plain import measure, pool
from monitor.records import FloatArray

__all__ = [
    "BIN_IDS",
    "POOLED_IDS",
    "REST",
    "WHOLE_IDS",
    "as_logits",
    "class_ids",
    "digest_logits",
    "span_within",
    "token_metrics",
]

SINGLE: Final = np.dtype(np.float32)
INT64: Final = np.dtype(np.int64)
LARGEST_ID: Final = 2.0**53
"""Beyond it, not every whole number is a float64."""
NO_IDS: Final = np.empty(0, dtype=np.int64)

WHOLE_IDS: Final = tuple(f"{name}{end}" for name in TOKEN_METRICS for end in ("", "_max"))
"""Metric ids of the fields of a summary's ``whole``, in their order."""
BIN_IDS: Final = tuple(f"{name}_bins{end}" for name in TOKEN_METRICS for end in ("", "_max"))
"""Metric ids of the fields of a summary's ``bins``, in their order."""
POOLED_IDS: Final = (*WHOLE_IDS, *BIN_IDS)
REST: Final = tuple(SUMMARY.names or ())[2:]
"""The other fields of a summary, in their order."""


def as_logits(value: Any) -> Any:
    """Return logits as a float array, or as the tensor they are where that is on another device.

    None stands for what cannot be read.
    """
    if (type(value) is np.ndarray and value.dtype is SINGLE) or on_device(value):
        return value
    array = to_array(value)
    return array.astype(np.float64) if array is not None and array.dtype == np.uint8 else array


def span_within(given: Any, v: int) -> tuple[int, int] | None:
    """Return a range of action bins, or None where it is not two or more of V classes.

    >>> span_within((2, 6), 8), span_within((6, 9), 8), span_within("bins", 8)
    ((2, 6), None, None)
    """
    try:
        low, high = given
        low, high = int(low), int(high)
    except Exception:  # a foreign type may raise anything
        return None
    return (low, high) if 0 <= low < high - 1 < v else None


def class_ids(given: Any, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the chosen ids, flat; -1 where they are not whole numbers or have another shape.

    >>> class_ids([3.0, 0.5], (2,)).tolist(), class_ids([3], (2,)).tolist()
    ([3, -1], [-1, -1])
    """
    if type(given) is np.ndarray and given.dtype == INT64 and given.shape == shape:
        return given if len(shape) == 1 else given.reshape(-1)
    array = to_array(given)
    if array is None or array.shape != shape:
        return np.full(int(np.prod(shape)), -1)
    ids = array.reshape(-1).astype(np.float64)
    with np.errstate(invalid="ignore"):
        whole = (ids >= 0.0) & (ids < LARGEST_ID) & (ids == np.floor(ids))
    return np.where(whole, ids, -1.0).astype(np.int64)


def digest_logits(
    logits: Any,
    ids: NDArray[np.int64] | None,
    span: tuple[int, int] | None,
    *,
    groups: int = 1,
    by_token: bool = True,
) -> tuple[FloatArray, FloatArray]:
    """Return what the monitor keeps of the logits of G groups of N tokens: of G steps.

    The compiled pass takes float32 where numba is installed; other types, and all where it is
    not, are taken by numpy; tensors on another device are measured there.

    Args:
        logits: ``(G N, V)`` from :func:`as_logits`.
        ids: ``(G N,)`` classes of the chosen tokens; numbers that are not classes are noticed.
        span: Half-open range of the action bins within V.
        groups: G.
        by_token: Whether the second result is needed.

    Returns:
        ``(G, 22)`` numbers, one ``SUMMARY`` per group, and ``(G, W, 5)``, one ``TOKEN`` per token
        (see :mod:`monitor.reading.logits.compiled`); W is N, or 2 N with a range, where the second
        half is of the bins alone.
    """
    count, v = logits.shape
    kernel = load_kernel() if type(logits) is np.ndarray and logits.dtype == SINGLE else None
    if kernel is not None:
        low, high = span or (0, 0)
        width = count // groups * (1 if span is None else 2)
        summaries = np.empty((groups, SUMMARY_SIZE))
        rows = np.empty((groups if by_token else 1, width, TOKEN_SIZE))
        # Compiled for plain memory alone.
        plain = logits if logits.flags.carray else logits.copy(order="C")
        chosen = NO_IDS if ids is None else ids if ids.flags.carray else np.array(ids)
        kernel(plain, chosen, low, high, summaries, rows)
        return summaries, rows
    # What stands for an unusable token is left out at the end.
    with np.errstate(over="ignore", invalid="ignore"):
        bins = picked = None
        if not isinstance(logits, np.ndarray):
            whole, bins, picked = measure_on_device(logits, span, ids)
        else:
            whole = measure(logits)
            if span is not None:
                bins = measure(logits[:, slice(*span)])
            if ids is not None:
                columns = np.minimum(np.maximum(ids, 0), v - 1)
                picked = logits[np.arange(count), columns].astype(np.float64)
        return pool(whole, bins, span, ids, picked, v, groups)


def token_metrics(
    logits: Any, ids: Any = None, span: tuple[int, int] | None = None
) -> dict[str, float | None]:
    """Return the token metrics of one step by id, pooled over its tokens.

    Args:
        logits: ``(N, V)`` numpy, torch or lists.
        ids: ``(N,)`` classes of the chosen tokens.
        span: Half-open range of the action bins within V.

    Returns:
        TB-E, TB-D, TB-TP and TB-PCS: the mean and, ending in ``_max``, the largest; the same of
        the action bins alone (``_bins``), ``action_mass``, ``alpha`` and ``tokens_outside``. None
        where unknown, as all are where a token's logits hold NaN, +inf or only -inf.

    Raises:
        ValueError: The logits are not ``(N, V)`` with V of at least 2, or the range does not fit.

    >>> token_metrics([[0.0, 0.0]])["TB-E"]
    1.0
    """
    taken = as_logits(logits)
    if taken is None or len(taken.shape) != 2 or taken.shape[0] < 1 or taken.shape[1] < 2:
        message = f"logits {getattr(taken, 'shape', type(logits).__name__)} must be (N, V), V >= 2"
        raise ValueError(message)
    count, v = taken.shape
    if span is not None and span_within(span, v) is None:
        message = f"span {span} must be (low, high) of at least two of {v} classes"
        raise ValueError(message)
    chosen = None if ids is None else class_ids(ids, (count,))
    summaries, _ = digest_logits(taken, chosen, span, by_token=False)
    found = dict(zip((*POOLED_IDS, *REST), summaries[0].tolist(), strict=True))
    names = (*POOLED_IDS, "action_mass", "alpha", "tokens_outside")
    return {name: None if found[name] != found[name] else found[name] for name in names}
