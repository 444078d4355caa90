"""Functions compiled by numba where it is installed (extra ``fast``)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from threading import Timer
from typing import Any, Final, TypeVar

log = logging.getLogger(__name__)

Called = TypeVar("Called", bound=Callable[..., Any])

FASTMATH: Final = frozenset({"contract", "reassoc", "nsz"})
"""Lets sums be taken in lanes; NaN and infinity keep their meaning."""
SILENCE_S: Final = 2.0
"""Compiling takes longer than this, loading what has been compiled does not."""


@cache
def usable() -> bool:
    """Tell whether numba is installed, fits this numpy and may compile."""
    if find_spec("numba") is None:
        return False
    try:
        from numba import config
    except Exception as error:  # each version of numba takes certain versions of numpy alone
        log.warning("numba is installed but cannot be used, so updates are slower: %s", error)
        return False
    return not config.DISABLE_JIT


def compile_for(
    signature: Any, function: Callable[..., None], *, in_lanes: bool = False
) -> Callable[..., None] | None:
    """Return ``function`` compiled for one signature, None where numba is not usable.

    As a rule it does the operations in the order in which they stand, so that what a run recorded
    replays to the same bits with and without numba. ``in_lanes`` gives that up for speed: only for
    what is kept as evidence and not computed again.

    Takes seconds the first time ever; numba keeps the result beside the source or, where it may
    not write there, in the user's cache.
    """
    if not usable():
        return None
    from numba import njit
    from numba.extending import register_jitable

    while _parts:
        register_jitable(_parts.pop())
    name = f"{function.__module__}.{function.__name__}"
    options: dict[str, Any] = {"fastmath": set(FASTMATH) if in_lanes else False, "nogil": True}
    options["error_model"] = "numpy"  # no check at every division
    note = Timer(
        SILENCE_S,
        log.warning,
        ("compiling %s; numba keeps it for the next start where it can", name),
    )
    note.daemon = True
    note.start()
    try:
        compiled: Callable[..., None] = njit(signature, cache=True, **options)(function)
    except Exception as error:  # no folder to keep it in, a full disk, a damaged file
        log.warning("numba cannot keep %s, so every start compiles it: %s", name, error)
        compiled = njit(signature, **options)(function)
    finally:
        note.cancel()
    return compiled


def within(function: Called) -> Called:
    """Mark a function that a compiled one calls; both must stand in one file.

    numba compiles anew when the file of the function that is called from outside has changed,
    and looks at no other.
    """
    _parts.append(function)
    return function


_parts: list[Callable[..., Any]] = []
"""Marked, and not yet known to numba, which takes a while to import."""
