"""Any value as JSON text: no NaN, no infinity, floats to the last bit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import numpy as np

__all__ = ["dumps", "jsonable"]

MAX_ELEMENTS: Final = 4096
"""Longer arrays are written as null: a picture returned as an action must not fill the disk."""


def jsonable(value: Any) -> Any:
    """Turn a value into what JSON can say; never raises and never keeps NaN or infinity.

    Floats keep every bit (``repr`` round-trips), what is not finite becomes ``None``, arrays and
    tensors become nested lists, records and mappings become objects, anything else its ``repr``.

    Example:
        >>> jsonable({"a": np.array([1.0, np.nan]), "b": np.float32(0.5)})
        {'a': [1.0, None], 'b': 0.5}
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Enum):
        return jsonable(value.value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(jsonable(key)): jsonable(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value] if len(value) <= MAX_ELEMENTS else None
    if isinstance(value, (set, frozenset)):
        return sorted((jsonable(item) for item in value), key=str)
    if isinstance(value, Path):
        return value.as_posix()
    if callable(getattr(value, "model_dump", None)):
        return jsonable(value.model_dump(mode="json"))
    return _array_to_json(value)


def _array_to_json(value: Any) -> Any:
    """Lists of an array, tensor or numpy scalar; ``repr`` of what is none of them."""
    try:
        if callable(getattr(value, "detach", None)):
            tensor = value.detach().cpu()
            value = tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy()
        if isinstance(value, (np.ndarray, np.generic)):
            if value.size > MAX_ELEMENTS:
                return None
            if value.dtype.kind in "biufO":
                return jsonable(value.tolist())
    except Exception as error:  # a broken array type must not end a run
        return f"<unreadable {type(value).__name__}: {error}>"
    return repr(value)[:200]


def dumps(record: Any, *, indent: int | None = None) -> str:
    """JSON text of a record without NaN or infinity."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(jsonable(record), allow_nan=False, indent=indent, separators=separators)
