"""Reading what policies and robots hand over: numpy, torch or plain lists, never an exception."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.records import Numbers


def to_array(value: Any) -> NDArray[Any] | None:
    """Return a numeric array of ``value``, float32 or float64 (uint8 stays), or None.

    Torch tensors of any type and device are taken without importing torch. Half precision is
    widened, so that nothing overflows in it.
    """
    try:
        if not isinstance(value, np.ndarray):
            if hasattr(value, "detach"):
                value = value.detach()
                if value.dtype.itemsize < 4 and value.is_floating_point():
                    value = value.float()
                value = value.cpu().numpy()
            else:
                value = np.asarray(value)
        kind, size = value.dtype.kind, value.dtype.itemsize
        if (kind == "f" and size in (4, 8)) or value.dtype == np.uint8:
            return np.asarray(value)
        if kind in "iub" or (kind == "f" and size > 4) or kind == "O":
            return np.asarray(value, dtype=np.float64)
        if kind in "cSUMm":
            return None
        return np.asarray(value, dtype=np.float32)
    except Exception:  # whatever a foreign array type raises, it means: not readable
        return None


def to_row(value: Any, size: int) -> list[float] | None:
    """Return ``value`` as ``size`` floats (perhaps not finite), or None if it has another shape."""
    if type(value) is np.ndarray and value.shape == (size,) and value.dtype.char in "df":
        quick: list[float] = value.tolist()  # the usual case, without the detour
        return quick
    array = to_array(value)
    if array is None or array.shape != (size,):
        return None
    row: list[float] = array.tolist()
    return row if array.dtype.kind == "f" else [float(x) for x in row]


def to_scalar(value: Any) -> float | None:
    """Return ``value`` as one float (perhaps not finite), or None if it is not one number."""
    if isinstance(value, float):
        return float(value)
    array = to_array(value)
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def holes(row: list[float] | Numbers) -> list[int]:
    """Return the places of ``row`` that are not finite.

    >>> holes([0.0, float("nan"), float("inf")])
    [1, 2]
    """
    return [i for i, x in enumerate(row) if not isfinite(x)]


def text(row: list[float]) -> list[float | str]:
    """Return ``row`` with what JSON cannot hold written as text."""
    return [x if isfinite(x) else repr(x) for x in row]
