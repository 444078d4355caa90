"""What crosses between two processes, as bytes: JSON for the shape, raw memory for the arrays.

Nothing that is received is ever executed: there is no pickle here. What has no form in this format
(a simulator's own object in ``info``) crosses as a :class:`Foreign`, which only says what it was.
"""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from envs.base import Contact

__all__ = ["Foreign", "decode", "encode"]

Array = NDArray[Any]

_KINDS: Final = "biufcSUmM"
"""Kinds of numbers and texts whose memory means the same in another process."""
_NAMED: Final[dict[tuple[str, tuple[str, ...]], Callable[..., Any]]] = {
    ("Contact", Contact._fields): Contact
}
_TEXT_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class Foreign:
    """Stands for an object that cannot cross.

    Attributes:
        kind: name of its type.
        text: the beginning of its ``repr``.
    """

    kind: str
    text: str


def encode(value: Any) -> tuple[bytes, list[Array]]:
    """Take a value apart.

    Args:
        value: None, numbers, texts, bytes, arrays, tensors, and tuples, lists and mappings of them.

    Returns:
        The shape of the value as JSON, and its arrays, each in C order.

    Example:
        >>> tree, arrays = encode({"a": (1, np.array([2.0]))})
        >>> tree
        b'{"d":[["a",{"t":[1,{"a":0}]}]]}'
        >>> decode(tree, arrays)
        {'a': (1, array([2.]))}
    """
    arrays: list[Array] = []
    tree = _encode(value, arrays)
    return json.dumps(tree, separators=(",", ":")).encode("ascii"), arrays


def decode(tree: bytes, arrays: list[Array]) -> Any:
    """Put a value together again; the reverse of :func:`encode`.

    Args:
        tree: JSON.
        arrays: arrays from :func:`encode`; they become part of the value.

    Raises:
        ValueError: if the bytes are not what :func:`encode` writes.
    """
    return _decode(json.loads(tree), arrays)


def _encode(value: Any, arrays: list[Array]) -> Any:
    # The plain types are compared by identity: a subclass may be anything, np.float64 is a float.
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray):
        return _encode_array("a", value, arrays)
    if isinstance(value, np.generic):
        return _encode_array("s", np.asarray(value), arrays)
    if isinstance(value, tuple):
        items = [_encode(item, arrays) for item in value]
        names = getattr(value, "_fields", None)
        return {"t": items} if names is None else {"n": [kind.__name__, list(names), items]}
    if isinstance(value, list):
        return [_encode(item, arrays) for item in value]
    if isinstance(value, Mapping):
        return {"d": [[_encode(k, arrays), _encode(v, arrays)] for k, v in value.items()]}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _encode_array("b", np.frombuffer(value, dtype=np.uint8), arrays)
    if callable(getattr(value, "detach", None)):  # a torch tensor, wherever it lies
        return _encode_array("a", np.asarray(value.detach().cpu().numpy()), arrays)
    if isinstance(value, Enum):
        return _encode(value.value, arrays)
    for plain in (int, float, str):
        if isinstance(value, plain):
            return plain(value)
    return {"f": [f"{kind.__module__}.{kind.__qualname__}", _beginning(value)]}


def _encode_array(tag: str, array: Array, arrays: list[Array]) -> Any:
    if array.dtype.kind not in _KINDS or array.dtype.names is not None:
        return {"f": [f"numpy.ndarray of {array.dtype}", _beginning(array)]}
    arrays.append(np.asarray(array, order="C"))
    return {tag: len(arrays) - 1}


def _beginning(value: Any) -> str:
    try:
        return repr(value)[:_TEXT_LENGTH]
    except Exception as error:  # an object that cannot even say what it is
        return f"{type(error).__name__} in repr"


def _decode(tree: Any, arrays: list[Array]) -> Any:
    if isinstance(tree, list):
        return [_decode(item, arrays) for item in tree]
    if not isinstance(tree, dict):
        return tree
    ((tag, content),) = tree.items()
    if tag == "d":
        return {_decode(key, arrays): _decode(value, arrays) for key, value in content}
    if tag == "a":
        return arrays[content]
    if tag == "t":
        return tuple(_decode(item, arrays) for item in content)
    if tag == "s":
        return arrays[content][()]
    if tag == "b":
        return arrays[content].tobytes()
    if tag == "n":
        name, names, items = content
        return _named(name, tuple(names))(*(_decode(item, arrays) for item in items))
    if tag == "f":
        return Foreign(*content)
    msg = f"unknown tag {tag!r} in a message"
    raise ValueError(msg)


@lru_cache(maxsize=64)
def _named(name: str, names: tuple[str, ...]) -> Callable[..., Any]:
    """The named tuple of these names: ours, or one made alike."""
    return _NAMED.get((name, names)) or namedtuple(name, names)
