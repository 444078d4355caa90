"""Faults of the data of N robots, as masks by code; see :mod:`monitor.faults.data`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.faults.data import ACTIONLESS, error_code
from monitor.reading.arrays import to_array, words
from monitor.reading.batch import Mask, note
from monitor.records import FloatArray, Step


def add_data_faults(step: Step, action: FloatArray, faults: dict[str, Mask]) -> None:
    """Add to the faults of reading ``step`` what else is wrong with its data.

    Args:
        step: Step of N robots.
        action: ``(N, D)`` as read from it.
        faults: Masks ``(N,)`` by code; written to.
    """
    n = len(action)
    if step.policy_error is not None:
        for code, where in errors(step.policy_error, n).items():
            note(faults, code, where)
    if step.env_error is not None:
        note(faults, "ENV_ERROR", given_where(step.env_error, n))
    if step.decode_ok is not True:
        decoded = to_array(step.decode_ok)
        if decoded is None or decoded.size not in (1, n):
            decoded = np.zeros(1)  # what cannot be read does not say that all is well
        note(faults, "MALFORMED_TOKENS", np.broadcast_to(~(decoded.reshape(-1) > 0.5), (n,)))
    absent = np.isnan(action[:, 0])
    if absent.any():
        for code in ACTIONLESS & faults.keys():
            absent = absent & ~faults[code]
        note(faults, "ACTION_MISSING", absent)


def errors(given: Any, n: int) -> dict[str, Mask]:
    """Return where the policy raised an error, by fault code."""
    found: dict[str, Mask] = {}
    for i in np.flatnonzero(given_where(given, n)):
        code = error_code(words(given[i] if _one_per_robot(given, n) else given))
        note(found, code, np.arange(n) == i)
    return found


def given_where(given: Any, n: int) -> NDArray[np.bool_]:
    """Return where an error is given: a sequence of N, or anything else for all."""
    if not _one_per_robot(given, n):
        return np.ones(n, dtype=bool)
    return np.array([one is not None for one in given], dtype=bool)


def _one_per_robot(given: Any, n: int) -> bool:
    if isinstance(given, np.ndarray):
        return bool(given.shape[:1] == (n,))
    return isinstance(given, (list, tuple)) and len(given) == n
