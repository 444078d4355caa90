"""Named state: a dataclass declares it once, and it becomes a numpy record or a plain object.

Compiled code reads a record, an element of a structured array; plain Python reads an object of
the declared class, with lists in place of arrays. Both are written alike, ``state.window[k][j]``,
so that one function serves both and gives the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import MISSING, Field, field, fields
from functools import cache
from math import nan
from types import MappingProxyType
from typing import Any, Final, NamedTuple, final

import numpy as np

Vector = list[float]
Matrix = list[list[float]]
Sizes = Mapping[str, int]
"""Lengths by name, such as ``window`` and ``dim``; a declared shape may name them."""

_KINDS: Final = {float: "<f8", int: "<i8", bool: "?"}
_DTYPES: Final[dict[str, np.dtype[Any]]] = {}
"""Equal records share one dtype object: numba finds a known dtype by identity, and compares one
that is only equal field by field, which costs more than a step."""


class _Array(NamedTuple):
    shape: tuple[int | str, ...]
    start: float


class _Part(NamedTuple):
    declared: type
    sizes: Mapping[str, int | str]


def array(*shape: int | str, start: float = nan) -> Any:
    """Declare an array of floats, every element ``start`` when an episode begins.

    Args:
        *shape: Lengths, given as numbers, as a name of :data:`Sizes`, or as ``"name-3"``.
        start: Value of a new element.
    """
    return field(default_factory=list, metadata={"layout": _Array(shape, start)})


def part(declared: type, **sizes: int | str) -> Any:
    """Declare a group of fields that is used more than once, each time with its own sizes."""
    return field(default=None, metadata={"layout": _Part(declared, sizes)})


def redeclared(one: Field[Any]) -> Any:
    """Return the declaration of a field for use in another dataclass."""
    layout = one.metadata.get("layout")
    if isinstance(layout, _Array):
        return array(*layout.shape, start=layout.start)
    return field(default=one.default)


def resolve_length(length: int | str, sizes: Sizes) -> int:
    """Return a length in numbers.

    >>> sizes = {"window": 8}
    >>> [resolve_length(one, sizes) for one in (4, "window", "window-3", "window+6")]
    [4, 8, 5, 14]
    """
    if isinstance(length, int):
        return length
    name, sign, number = length.partition("+" if "+" in length else "-")
    return sizes[name] + int(sign + (number or "0"))


def _inner(sizes: Sizes, one: _Part) -> dict[str, int]:
    return {**sizes, **{name: resolve_length(n, sizes) for name, n in one.sizes.items()}}


def dtype_of(declared: type, sizes: Sizes) -> np.dtype[Any]:
    """Return the record of a declaration.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class State:
    ...     count: int = 0
    ...     positions: Matrix = array("window", 3)
    >>> dtype_of(State, {"window": 8}).fields["positions"][0].shape
    (8, 3)
    """
    columns: list[tuple[Any, ...]] = []
    for one in fields(declared):
        layout = one.metadata.get("layout")
        if isinstance(layout, _Array):
            shape = tuple(resolve_length(n, sizes) for n in layout.shape)
            columns.append((one.name, "<f8", shape))
        elif isinstance(layout, _Part):
            columns.append((one.name, dtype_of(layout.declared, _inner(sizes, layout))))
        else:
            columns.append((one.name, _KINDS[type(one.default)]))
    return shared_dtype(columns)


def shared_dtype(columns: list[Any]) -> np.dtype[Any]:
    """Return the one dtype object of these columns."""
    made = np.dtype(columns, align=True)
    return _DTYPES.setdefault(repr(made.descr), made)


def _start(one: Field[Any], sizes: Sizes) -> Any:
    layout = one.metadata.get("layout")
    if isinstance(layout, _Array):
        return _filled([resolve_length(n, sizes) for n in layout.shape], layout.start)
    if isinstance(layout, _Part):
        return fresh(layout.declared, **_inner(sizes, layout))
    return one.default if one.default is not MISSING else nan


def _filled(shape: list[int], value: float) -> Any:
    if not shape:
        return value
    return [_filled(shape[1:], value) for _ in range(shape[0])]


def fresh(declared: type, /, **sizes: int) -> Any:
    """Return an object of the declared class as it is when an episode begins."""
    return declared(**{one.name: _start(one, sizes) for one in fields(declared)})


def store(record: Any, value: Any) -> None:
    """Copy an object into a record of the same declaration."""
    for name in record.dtype.names:
        given = getattr(value, name)
        if record.dtype[name].names is None:
            record[name] = given
        else:
            store(record[name], given)


def records(declared: type, sizes: Sizes, n: int, value: Any = None) -> Any:
    """Return ``(n,)`` records, each a copy of ``value`` (default: as an episode begins)."""
    made = np.zeros(1, dtype_of(declared, sizes))
    store(made[0], fresh(declared, **sizes) if value is None else value)
    return np.tile(made, n)


@cache
def _spans(declared: type, sizes: tuple[tuple[str, int], ...]) -> Mapping[str, slice | int]:
    known: Any = dtype_of(declared, dict(sizes)).fields
    spans: dict[str, slice | int] = {}
    for name, (kind, at, *_) in known.items():
        begin = at // 8
        spans[name] = slice(begin, begin + kind.itemsize // 8) if kind.shape else begin
    return MappingProxyType(spans)


def spans_of(declared: type, sizes: Sizes) -> Mapping[str, slice | int]:
    """Return where each field of a declaration that holds floats alone stands in its row."""
    return _spans(declared, tuple(sorted(sizes.items())))


@final
class RowView:
    """An object of a declaration of floats that is filled from a row and read back as one."""

    def __init__(self, declared: type, sizes: Sizes) -> None:
        self.object: Any = fresh(declared, **sizes)
        self._spans = list(spans_of(declared, sizes).items())

    def filled(self, row: Vector) -> Any:
        """Return the object with the values of a row."""
        for name, span in self._spans:
            setattr(self.object, name, row[span])
        return self.object

    def row(self) -> Vector:
        """Return the object's values."""
        row: Vector = []
        for name, span in self._spans:
            value = getattr(self.object, name)
            if isinstance(span, slice):
                row += value
            else:
                row.append(value)
        return row


def copied(value: Any) -> Any:
    """Return a deep copy of an object of a declaration, cheaper than :func:`copy.deepcopy`."""
    return deepcopy(value)
