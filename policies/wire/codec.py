"""MessagePack with numpy arrays as openpi writes them; nothing that could run code is decoded.

An array is a map ``{b"__ndarray__": True, b"data", b"dtype", b"shape"}``, a numpy number
``{b"__npgeneric__": True, b"data", b"dtype"}``. Of dtypes, numbers, flags and texts are taken.

Source: ``openpi_client/msgpack_numpy.py`` of openpi; only the layout is theirs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

import msgpack
import numpy as np
from numpy.typing import NDArray

from monitor.errors import MonitorError

__all__ = ["MAX_MESSAGE_BYTES", "WireFormatError", "decode", "encode"]

MAX_MESSAGE_BYTES: Final = 64 * 2**20
"""Default limit of a frame: the logits of 12 tokens over 265 347 ids are 12.7 MB in float32."""

_ARRAY: Final = frozenset({b"__ndarray__", b"data", b"dtype", b"shape"})
_NUMBER: Final = frozenset({b"__npgeneric__", b"data", b"dtype"})
_DTYPE: Final = re.compile(r"[<>|=]?[biufSU][1-9][0-9]{0,6}")
_MAX_AXES: Final = 8
_MAX_AXIS: Final = 2**31


class WireFormatError(MonitorError, ValueError):
    """A message cannot be written, or a frame cannot be read."""


def encode(message: Mapping[Any, Any]) -> bytes:
    """Write a message.

    Args:
        message: texts, numbers, flags, None, bytes, lists, maps, numpy arrays and numbers.

    Raises:
        WireFormatError: if it holds anything else, an array of objects for example.
    """
    try:
        return bytes(msgpack.packb(message, default=_pack))
    except WireFormatError:
        raise
    except Exception as error:
        msg = f"the message cannot be written: {type(error).__name__}: {error}"
        raise WireFormatError(msg) from error


def decode(frame: bytes | str) -> dict[Any, Any]:
    """Read a message; its arrays are copies of their own.

    Args:
        frame: as it came; a text is none.

    >>> decode(encode({"actions": np.arange(3.0)}))
    {'actions': array([0., 1., 2.])}

    Raises:
        WireFormatError: if the frame is not a message, or one of its arrays is not what it says.
    """
    if isinstance(frame, str):
        msg = f"a text of {len(frame)} characters came, expected a binary message"
        raise WireFormatError(msg)
    try:
        message = msgpack.unpackb(frame, object_hook=_unpack, ext_hook=_no_extension)
    except WireFormatError:
        raise
    except Exception as error:
        msg = f"a frame of {len(frame)} bytes cannot be read: {type(error).__name__}: {error}"
        raise WireFormatError(msg) from error
    if not isinstance(message, dict):
        msg = f"a frame holds {type(message).__name__}, expected a map"
        raise WireFormatError(msg)
    return message


def _pack(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        if _DTYPE.fullmatch(value.dtype.str) is None:
            msg = f"an array of {value.dtype} cannot travel: only numbers, flags and texts can"
            raise WireFormatError(msg)
        if isinstance(value, np.ndarray):
            return {
                b"__ndarray__": True,
                b"data": value.tobytes(),
                b"dtype": value.dtype.str,
                b"shape": value.shape,
            }
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    msg = f"a {type(value).__module__}.{type(value).__qualname__} cannot travel"
    raise WireFormatError(msg)


def _unpack(found: dict[Any, Any]) -> Any:
    if b"__ndarray__" in found:
        return _array(found)
    if b"__npgeneric__" in found:
        return _number(found)
    return found


def _array(found: dict[Any, Any]) -> NDArray[Any]:
    if found.keys() != _ARRAY:
        raise WireFormatError(_wrong("array", "its keys", sorted(map(repr, found))))
    data, shape, dtype = found[b"data"], found[b"shape"], _dtype(found[b"dtype"])
    if not isinstance(data, bytes):
        raise WireFormatError(_wrong("array", "its data", type(data).__name__))
    axes = shape if isinstance(shape, list) else None
    if axes is None or len(axes) > _MAX_AXES or not all(_is_axis(one) for one in axes):
        raise WireFormatError(_wrong("array", "its shape", shape))
    if math.prod(axes) * dtype.itemsize != len(data):
        what = f"{len(data)} bytes for shape {tuple(axes)} of {dtype}"
        raise WireFormatError(_wrong("array", "its size", what))
    if dtype.kind == "b":  # any other byte in a flag is undefined behaviour further on
        return np.array(np.frombuffer(data, np.uint8).reshape(axes) != 0)
    return np.frombuffer(data, dtype).reshape(axes).copy()


def _is_axis(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MAX_AXIS


def _number(found: dict[Any, Any]) -> Any:
    dtype, data = _dtype(found.get(b"dtype")), found.get(b"data")
    kinds: Mapping[str, tuple[type, ...]] = {"S": (bytes,), "U": (str,)}
    if found.keys() != _NUMBER or type(data) not in kinds.get(dtype.kind, (bool, int, float)):
        raise WireFormatError(_wrong("number", f"its data for {dtype}", type(data).__name__))
    return dtype.type(data)


def _dtype(text: Any) -> np.dtype[Any]:
    if not isinstance(text, str) or _DTYPE.fullmatch(text) is None:
        raise WireFormatError(_wrong("array", "its dtype", text))
    return np.dtype(text)


def _wrong(kind: str, what: str, given: Any) -> str:
    return f"the {kind} cannot be read: {what} is {str(given)[:80]!r}"


def _no_extension(code: int, data: bytes) -> Any:
    msg = f"extension type {code} ({len(data)} bytes) is not taken"
    raise WireFormatError(msg)
