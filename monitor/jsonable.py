"""Any value as JSON text: no NaN, no infinity, floats to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

__all__ = ["dumps", "encode", "jsonable"]

MAX_ELEMENTS: Final = 4096
"""Longer arrays are written as null: an image returned as an action must not fill the disk."""
MAX_DEPTH: Final = 64
"""Deeper values are written as text: a list may hold itself."""


def encode(value: Any) -> bytes:
    """Return a value as one line of JSON in UTF-8, without the newline; never raises.

    Floats keep every bit and become null where they are not finite. Arrays, tensors and numpy
    scalars become nested lists and numbers, records and pydantic models become objects, enums
    their value, paths text. Anything else becomes its ``repr``.

    >>> encode({"a": np.array([1.0, np.nan]), "b": np.float32(0.5)})
    b'{"a":[1.0,null],"b":0.5}'
    """
    try:
        return _ENCODER.encode(value)
    except Exception:  # a key, text or object that JSON cannot hold; a run must not end for it
        return _ENCODER.encode(_forced(value))


def dumps(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON text (see :func:`encode`), indented where ``indent`` says so."""
    line = encode(value)
    return (line if indent is None else msgspec.json.format(line, indent=indent)).decode()


def jsonable(value: Any) -> Any:
    """Return a value as what its JSON text reads back as (see :func:`encode`).

    >>> jsonable({"a": np.array([1.0, np.nan]), "b": np.float32(0.5)})
    {'a': [1.0, None], 'b': 0.5}
    """
    return msgspec.json.decode(encode(value))


def enc_hook(value: Any) -> Any:
    """Return what msgspec writes in place of a value that it does not know; never raises."""
    try:
        if isinstance(value, str):
            return str(value)
        if callable(getattr(value, "detach", None)):
            tensor = value.detach().cpu()
            value = tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy()
        if isinstance(value, (np.ndarray, np.generic)):
            if value.size > MAX_ELEMENTS:
                return None
            return value.tolist() if value.dtype.kind in "biufO" else repr(value)[:200]
        if isinstance(value, Mapping):
            return dict(value)
        if isinstance(value, Path):
            return value.as_posix()
        if callable(getattr(value, "model_dump", None)):
            return value.model_dump(mode="json")
        return repr(value)[:200]
    except Exception as error:  # a broken array type must not end a run
        return f"<unreadable {type(value).__name__}: {error}>"


_ENCODER: Final = msgspec.json.Encoder(enc_hook=enc_hook)


def _forced(value: Any, depth: int = 0) -> Any:
    """Return a value made of containers, keys and texts that JSON can hold."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if value is None or type(value) in (bool, int, float):
        return value
    if depth == MAX_DEPTH:
        return f"<{type(value).__name__} at depth {depth}>"
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_forced(item, depth + 1) for item in value]
    kind = type(value)
    names = getattr(kind, "__struct_fields__", getattr(kind, "__dataclass_fields__", None))
    if names is not None:
        value = {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return {_key(key): _forced(item, depth + 1) for key, item in value.items()}
    return _forced(enc_hook(value), depth + 1)


def _key(key: Any) -> str:
    text = _forced(key)
    return text if isinstance(text, str) else str(text)
