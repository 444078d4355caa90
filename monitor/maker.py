"""Making frozen records quickly.

A frozen dataclass sets each field through ``object.__setattr__``, three times as slow as an
assignment. A maker assigns, and freezes the record last.
"""

from __future__ import annotations

from dataclasses import MISSING, field, fields, make_dataclass
from typing import Any, TypeVar, cast

__all__ = ["maker"]

T = TypeVar("T")


def maker(record: type[T]) -> type[T]:
    """Return what is called like ``record``, a frozen dataclass with slots, and makes one.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True, kw_only=True)
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> maker(Point)(x=1.0)
    Point(x=1.0, y=0.0)
    """

    def freeze(self: Any) -> None:
        self.__class__ = record

    if hasattr(record, "__post_init__"):
        message = f"{record.__name__} has a __post_init__ of its own, which a maker would leave out"
        raise TypeError(message)
    copied = []
    for one in fields(record):  # type: ignore[arg-type]
        if one.default_factory is not MISSING:
            again = field(default_factory=one.default_factory)
        else:
            again = field(default=one.default) if one.default is not MISSING else field()
        copied.append((one.name, one.type, again))
    twin = make_dataclass(
        record.__name__, copied, namespace={"__post_init__": freeze},
        slots=True, kw_only=True, eq=False,
    )  # fmt: skip
    return cast("type[T]", twin)
