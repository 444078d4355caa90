"""Compilation by numba where it is installed (extra ``fast``); plain Python otherwise.

numba's cache on disk notices a change in the file of the compiled function and in no other. Here
the text of every file that takes part goes into a fingerprint, the fingerprint into a closure of
the compiled function, and numba makes closures part of its cache key.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from types import FunctionType
from typing import Any, Final, TypeVar

log = logging.getLogger(__name__)

Marked = TypeVar("Marked", bound=Callable[..., Any])

SILENCE_S: Final = 2.0
"""Compiling takes longer than this; loading what is cached does not."""

_marked: set[Callable[..., Any]] = set()
"""Functions that may be compiled."""


def compiled(function: Marked) -> Marked:
    """Mark a function of a stage; a call from Python still runs plain Python."""
    _marked.add(function)
    return function


@cache
def usable() -> bool:
    """Tell whether numba is installed, fits this numpy and may compile."""
    if find_spec("numba") is None:
        return False
    try:
        from numba import config
    except Exception as error:  # each version of numba works with certain versions of numpy
        log.warning("numba is installed but cannot be used, so updates are slower: %s", error)
        return False
    return not config.DISABLE_JIT


def parts(functions: Sequence[Callable[..., Any]]) -> list[Callable[..., Any]]:
    """Return the functions and every marked function that they reach, in whatever file."""
    found: dict[Callable[..., Any], None] = {}
    waiting = list(functions)
    while waiting:
        function = waiting.pop()
        if function in found:
            continue
        found[function] = None
        for name in function.__code__.co_names:
            called = function.__globals__.get(name)
            if callable(called) and called in _marked:
                waiting.append(called)
    return list(found)


def fingerprint(functions: Sequence[Callable[..., Any]], salt: str = "") -> str:
    """Return a hash of the functions' order, of the files that they are in, and of ``salt``.

    Numbers and tuples under global names count too, since they may come from another file.
    """
    found = parts(functions)
    digest = sha256(salt.encode())
    digest.update(repr([(one.__module__, one.__qualname__) for one in functions]).encode())
    for file in sorted({one.__code__.co_filename for one in found}):
        digest.update(Path(file).read_bytes())
    for one in sorted(found, key=lambda one: (one.__module__, one.__qualname__)):
        for name in one.__code__.co_names:
            value = one.__globals__.get(name)
            if isinstance(value, (int, float, tuple)):
                digest.update(repr((name, value)).encode())
    return digest.hexdigest()


def compile_pass(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function, whose stages are :func:`named_anew`, compiled on its first call.

    Operations keep their order, so that results are the same to the last bit with and without
    numba.
    """
    from numba import njit

    try:
        made: Callable[..., None] = njit(cache=True, nogil=True, error_model="numpy")(function)
    except Exception as error:  # no folder that may hold the cache
        log.warning("numba cannot keep %s, so every start compiles it: %s", function, error)
        made = njit(nogil=True, error_model="numpy")(function)
    return made


def named_anew(functions: Sequence[Callable[..., Any]], tag: str) -> list[Callable[..., Any]]:
    """Return copies of the functions, and of all that they reach, with ``tag`` in their names.

    numba names machine code after the function and a number that starts again in each process.
    Two layouts that two processes have compiled may so have one name, and of two pieces of
    machine code with one name that are loaded from its cache the second is taken for the first.

    Args:
        functions: Marked functions.
        tag: What tells this set of sources and layouts from all others; letters and digits.
    """
    from numba.extending import register_jitable

    copies: dict[Callable[..., Any], Callable[..., Any]] = {}
    for one in parts(functions):
        copy = FunctionType(one.__code__, dict(one.__globals__), one.__name__, one.__defaults__)
        copy.__qualname__ = f"{one.__qualname__}_{tag}"
        copy.__module__ = one.__module__
        copies[one] = copy
    for one, copied in copies.items():
        for name in one.__code__.co_names:
            called = one.__globals__.get(name)
            if callable(called) and called in copies:
                copied.__globals__[name] = copies[called]
    return [register_jitable(error_model="numpy")(copies[one]) for one in functions] + [
        register_jitable(error_model="numpy")(copied)
        for one, copied in copies.items()
        if one not in functions
    ]


@contextmanager
def announced(name: str) -> Iterator[None]:
    """Say that something is being compiled when it takes longer than :data:`SILENCE_S`."""
    note = Timer(
        SILENCE_S,
        log.warning,
        ("compiling %s; numba keeps it for the next start where it can", name),
    )
    note.daemon = True
    note.start()
    try:
        yield
    finally:
        note.cancel()
