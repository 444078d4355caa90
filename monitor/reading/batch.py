"""Batched steps to arrays with NaN for unknown, and the faults seen on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.reading.arrays import to_array
from monitor.reading.logits.compiled import ALPHA, BAD, FITTING, MASS, OF_BINS, OUTSIDE, PRINT
from monitor.reading.logits.plain import Scratch, digest_of, on_a_device
from monitor.reading.step import FARTHEST_ID, FARTHEST_M, KEYS, LONG, UNIT_TOLERANCE, span_of
from monitor.records import FloatArray, Step

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """What is kept of one step of N environments; NaN is unknown.

    Attributes:
        action: ``(N, D)`` environment units.
        place: ``(N, 3)`` metres.
        turn: ``(N, 4)`` unit, w, x, y, z.
        goal: ``(N,)`` metres.
        gripper: ``(N,)`` opening in [0, 1].
        latency: ``(N,)`` seconds.
        success: ``(N,)`` the task's own verdict.
        alpha: ``(N,)``.
        logits_id: ``(N,)`` fingerprints of the logits, NaN where they are unusable; None without.
        values: ``(N,)`` by metric id.
        faults: ``(N,)`` by code.
    """

    action: FloatArray
    place: FloatArray
    turn: FloatArray
    goal: FloatArray
    gripper: FloatArray
    latency: FloatArray
    success: FloatArray
    alpha: FloatArray
    logits_id: FloatArray | None
    values: dict[str, FloatArray] = field(default_factory=dict)
    faults: dict[str, Mask] = field(default_factory=dict)


def read(step: Step, n: int, dim: int, scratch: Scratch) -> Batch:
    """Return the arrays of ``step``, whose fields have a leading axis of ``n`` environments."""
    # Infinities among what is added up are what this looks for.
    with np.errstate(over="ignore", invalid="ignore"):
        return _read(step, n, dim, scratch)


def _read(step: Step, n: int, dim: int, scratch: Scratch) -> Batch:
    faults: dict[str, Mask] = {}
    values: dict[str, FloatArray] = {}
    action = rows(step.action, n, (dim,), "ACTION", faults)
    place = rows(step.tcp_position, n, (3,), "POSE", faults)
    turn = rows(step.tcp_quaternion, n, (4,), "POSE", faults)
    far: Mask = np.zeros(n, dtype=bool)
    if step.tcp_position is not None and not np.abs(place).max() <= FARTHEST_M:
        far = np.asarray((np.abs(place) > FARTHEST_M).any(axis=1))
        place[far] = np.nan
    if step.tcp_quaternion is not None:
        # In the order in which a single monitor adds them, for the same bits.
        w, x, y, z = turn.T
        norm = np.sqrt(w * w + x * x + y * y + z * z)
        bent = np.abs(norm - 1.0) > UNIT_TOLERANCE
        norm[bent] = np.nan
        turn /= norm[:, None]
        far |= bent
    note(faults, "POSE_RANGE", far)
    goal = rows(step.goal_distance, n, (), "DISTANCE", faults)
    wrong = (goal < 0.0) | (goal > FARTHEST_M)
    note(faults, "DISTANCE_RANGE", wrong)
    goal[wrong] = np.nan
    gripper = rows(step.gripper, n, (), "GRIPPER", faults)
    latency = rows(step.latency_s, n, (), "LATENCY_VALUE", faults)
    late = latency < 0.0
    note(faults, "LATENCY_VALUE_RANGE", late)
    latency[late] = np.nan
    verdicts = step.success
    if n == 1 and np.ndim(verdicts) == 0:
        verdicts = None if verdicts is None else [verdicts]
    said: dict[str, Mask] = {}
    success = rows(verdicts, n, (), "SUCCESS", said)
    if "SUCCESS_SHAPE" in said:
        note(faults, "SUCCESS_SHAPE", said["SUCCESS_SHAPE"])
    alpha = np.full(n, np.nan)
    logits_id = None
    if step.token_logits is not None:
        found = read_logits(step, n, values, faults, scratch)
        if found is not None:
            alpha, logits_id = found
    return Batch(
        action=action, place=place, turn=turn, goal=goal, gripper=gripper, latency=latency,
        success=success, alpha=alpha, logits_id=logits_id,
        values=values, faults=faults,
    )  # fmt: skip


def note(faults: dict[str, Mask], code: str, where: Mask) -> None:
    """Add a fault where it is present."""
    if where.any():
        faults[code] = faults[code] | where if code in faults else where


def rows(
    value: Any, n: int, shape: tuple[int, ...], kind: str, faults: dict[str, Mask]
) -> FloatArray:
    """Return ``(n, *shape)`` floats, a whole row NaN where any of it is not finite."""
    # Finite numbers have a finite sum; where it is not finite, a look at each decides.
    if type(value) is np.ndarray and value.dtype == np.float64 and value.shape == (n, *shape):
        total = np.add.reduce(value, axis=None)
        if total - total == 0.0:
            return value.copy()
    out = np.full((n, *shape), np.nan)
    if value is None:
        return out
    array = to_array(value)
    if array is not None and array.shape == (n, 1) and not shape:
        array = array[:, 0]
    if array is None or array.shape != (n, *shape):
        note(faults, f"{kind}_SHAPE", np.ones(n, dtype=bool))
        return out
    total = array.sum()
    if np.isfinite(total):
        out[:] = array
        return out
    finite = np.isfinite(array)
    good = finite.all(axis=1) if shape else finite
    out[good] = array[good]
    note(faults, f"NONFINITE_{kind}", ~good)
    return out


def read_logits(
    step: Step, n: int, values: dict[str, FloatArray], faults: dict[str, Mask], scratch: Scratch
) -> tuple[FloatArray, FloatArray] | None:
    """Write the token metrics into ``values``.

    Returns:
        alpha and the fingerprints of the logits, each ``(n,)``; None where there are no logits.
    """
    logits = step.token_logits
    if not on_a_device(logits):
        logits = to_array(logits)
    shape = () if logits is None else tuple(logits.shape)
    if logits is None or len(shape) != 3 or shape[0] != n or shape[1] < 1 or shape[2] < 2:
        note(faults, "LOGITS_SHAPE", np.ones(n, dtype=bool))
        return None
    tokens, v = shape[1:]
    span = None if step.action_token_range is None else span_of(step.action_token_range)
    fits = span is None or 0 <= span[0] < span[1] - 1 < v
    ids = None if step.token_ids is None else _columns(step.token_ids, n, tokens)
    pooled = digest_of(
        logits.reshape(n * tokens, v), ids, span if fits else None, scratch,
        groups=n, rows=0,
    )  # fmt: skip
    # Environments innermost from here on.
    columns = np.ascontiguousarray(pooled.T)
    bad = columns[BAD] > 0.0
    if not fits:
        note(faults, "LOGITS_SHAPE", ~bad)
        columns[OF_BINS : MASS + 1] = np.nan
    if ids is not None:
        note(faults, "TOKEN_IDS", (columns[FITTING] == 0.0) & ~bad)
    note(faults, "NONFINITE_LOGITS", bad)
    values.update(zip(KEYS, columns, strict=False))
    values["tokens_outside"], values["alpha"] = columns[OUTSIDE], columns[ALPHA]
    return columns[ALPHA], columns[PRINT]


def _columns(given: Any, n: int, tokens: int) -> NDArray[np.int64]:
    """Return the chosen ids, ``(n * tokens,)``, -1 where they are no whole numbers."""
    if type(given) is np.ndarray and given.dtype == LONG and given.shape == (n, tokens):
        return given.reshape(-1)
    ids = rows(given, n, (tokens,), "X", {})
    with np.errstate(invalid="ignore"):
        whole = (ids >= 0.0) & (ids < FARTHEST_ID) & (ids == np.floor(ids))
    return np.where(whole, ids, -1.0).astype(np.int64).reshape(-1)
