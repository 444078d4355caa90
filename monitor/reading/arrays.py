"""Numbers from whatever a loop hands in: numpy, torch or lists; nothing here raises."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.records import Numbers


def to_array(value: Any) -> NDArray[Any] | None:
    """Return ``value`` as an array of float32, float64 or uint8; None if it is not numeric.

    Torch tensors of any dtype and device are read without importing torch. Half precision is
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
        elif isinstance(value, np.ma.MaskedArray):
            # What is masked is unknown, whatever number lies under the mask.
            value = np.ma.filled(value.astype(np.float64), np.nan)
        kind, size = value.dtype.kind, value.dtype.itemsize
        if (kind == "f" and size in (4, 8)) or value.dtype == np.uint8:
            return np.asarray(value)
        if kind in "iub" or (kind == "f" and size > 4) or kind == "O":
            return np.asarray(value, dtype=np.float64)
        if kind in "cSUMm":
            return None
        return np.asarray(value, dtype=np.float32)
    except Exception:  # a foreign array type may raise anything
        return None


def words(error: Any) -> str:
    """Return the text of an error, even of one that fails to give it.

    >>> words(ValueError("boom"))
    'boom'
    """
    try:
        return str(error)
    except Exception:  # foreign code may raise anything
        return f"{type(error).__name__} (message unavailable)"


def to_row(value: Any, size: int) -> list[float] | None:
    """Return ``value`` as ``size`` floats, perhaps not finite; None if it has another shape."""
    if type(value) is np.ndarray and value.shape == (size,) and value.dtype.char in "df":
        row: list[float] = value.tolist()  # the usual case, without a detour
        return row
    array = to_array(value)
    if array is None or array.shape != (size,):
        return None
    row = array.tolist()
    return row if array.dtype.kind == "f" else [float(x) for x in row]


def to_scalar(value: Any) -> float | None:
    """Return ``value`` as one float, perhaps not finite; None if it is not one number."""
    if isinstance(value, float):
        return float(value)
    array = to_array(value)
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def nonfinite_indices(row: list[float] | Numbers) -> list[int]:
    """Return the indices of the numbers that are not finite.

    >>> nonfinite_indices([0.0, float("nan"), float("inf")])
    [1, 2]
    """
    return [i for i, x in enumerate(row) if not isfinite(x)]


def json_ready(row: list[float]) -> list[float | str]:
    """Return ``row`` with NaN and infinities, which JSON cannot hold, as text.

    >>> json_ready([0.5, float("nan")])
    [0.5, 'nan']
    """
    return [x if isfinite(x) else repr(x) for x in row]
