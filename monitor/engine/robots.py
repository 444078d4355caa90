"""What N robots remember between steps: records where numba runs, else plain objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, final

import numpy as np

from monitor.stage.layout import dtype_of, fresh, records, store

__all__ = ["Robots"]


@final
class Robots:
    """N states of one declaration.

    Attributes:
        states: Structured array ``(N,)``, or a list of N objects.
    """

    def __init__(self, declared: type, sizes: Mapping[str, int], n: int, *, compiled: bool) -> None:
        self._declared, self._sizes, self._n = declared, dict(sizes), n
        self._blank = records(declared, sizes, 1)
        self.states: Any
        if compiled:
            self.states = np.tile(self._blank, n)
        else:
            self.states = [self._fresh() for _ in range(n)]

    def _fresh(self) -> Any:
        return fresh(self._declared, **self._sizes)

    def reset(self, which: Any = None) -> None:
        """Begin an episode of the robots in a mask or index array; None means all."""
        if isinstance(self.states, list):
            for i in np.arange(self._n) if which is None else np.arange(self._n)[which]:
                self.states[i] = self._fresh()
        else:
            self.states[slice(None) if which is None else which] = self._blank[0]

    def dump(self) -> Any:
        """Return the states as a structured array, to be pickled."""
        if not isinstance(self.states, list):
            return self.states.copy()
        array = np.tile(self._blank, self._n)
        for record, value in zip(array, self.states, strict=True):
            store(record, value)
        return array

    def load(self, array: Any) -> None:
        """Take over what :meth:`dump` returned, keeping this process's own dtype object."""
        if isinstance(self.states, list):
            self.states = [_loaded(self._fresh(), record) for record in array]
        else:
            self.states[:] = array.astype(dtype_of(self._declared, self._sizes))


def _loaded(value: Any, record: Any) -> Any:
    """Write a record into an object of its declaration and return the object."""
    for one in fields(value):
        given = record[one.name]
        if record.dtype[one.name].names is None:
            setattr(value, one.name, given.tolist())
        else:
            _loaded(getattr(value, one.name), given)
    return value
