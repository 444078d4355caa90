"""Batched steps to arrays with NaN for unknown, and the faults seen on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.arrays import to_array
from monitor.metrics.evidence import BINS, FARTHEST_M, FULL, UNIT_TOLERANCE, span_of
from monitor.metrics.sums import Scratch, on_a_device, table_of
from monitor.metrics.tokens import CHOSEN, LARGEST, LOG_Z, TOP, VALUES
from monitor.records import FloatArray, Step
from monitor.vector.history import Mask


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """What is kept of one step of N environments; NaN is unknown."""

    action: FloatArray
    place: FloatArray
    turn: FloatArray
    goal: FloatArray
    gripper: FloatArray
    latency: FloatArray
    success: FloatArray
    alpha: FloatArray
    print_of_logits: FloatArray | None
    values: dict[str, FloatArray] = field(default_factory=dict)
    faults: dict[str, Mask] = field(default_factory=dict)


def read(step: Step, n: int, dim: int, scratch: Scratch) -> Batch:
    """Return the arrays of ``step``, whose fields have a leading axis of ``n`` environments."""
    faults: dict[str, Mask] = {}
    values: dict[str, FloatArray] = {}
    action = rows(step.action, n, (dim,), "ACTION", faults)
    place = rows(step.tcp_position, n, (3,), "POSE", faults)
    with np.errstate(over="ignore"):
        far = (np.abs(place) > FARTHEST_M).any(axis=1)
        turn = rows(step.tcp_quaternion, n, (4,), "POSE", faults)
        norm = np.sqrt((turn * turn).sum(axis=1))
    bent = np.abs(norm - 1.0) > UNIT_TOLERANCE
    note(faults, "POSE_RANGE", far | bent)
    place[far] = np.nan
    turn[bent] = np.nan
    norm[bent] = 1.0
    turn = turn / norm[:, None]
    goal = rows(step.goal_distance, n, (), "DISTANCE", faults)
    wrong = (goal < 0.0) | (goal > FARTHEST_M)
    note(faults, "DISTANCE_RANGE", wrong)
    goal[wrong] = np.nan
    gripper = rows(step.gripper, n, (), "GRIPPER", faults)
    latency = rows(step.latency_s, n, (), "LATENCY_VALUE", faults)
    success = rows(step.success, n, (), "SUCCESS", {})
    alpha = np.full(n, np.nan)
    printed = None
    if step.token_logits is not None:
        printed = read_logits(step, n, values, alpha, faults, scratch)
    return Batch(
        action=action, place=place, turn=turn, goal=goal, gripper=gripper, latency=latency,
        success=success, alpha=alpha, print_of_logits=printed, values=values, faults=faults,
    )  # fmt: skip


def note(faults: dict[str, Mask], code: str, where: Mask) -> None:
    """Add a fault where it is present."""
    if where.any():
        faults[code] = faults[code] | where if code in faults else where


def rows(
    value: Any, n: int, shape: tuple[int, ...], kind: str, faults: dict[str, Mask]
) -> FloatArray:
    """Return ``(n, *shape)`` floats, a whole row NaN where any of it is not finite."""
    out = np.full((n, *shape), np.nan)
    if value is None:
        return out
    array = to_array(value)
    if array is not None and array.shape == (n, 1) and not shape:
        array = array[:, 0]
    if array is None or array.shape != (n, *shape):
        note(faults, f"{kind}_SHAPE", np.ones(n, dtype=bool))
        return out
    finite = np.isfinite(array)
    good = finite.all(axis=1) if shape else finite
    out[good] = array[good]
    note(faults, f"NONFINITE_{kind}", ~good)
    return out


def read_logits(
    step: Step, n: int, values: dict[str, FloatArray], alpha: FloatArray,
    faults: dict[str, Mask], scratch: Scratch,
) -> FloatArray | None:  # fmt: skip
    """Write the token metrics into ``values`` and ``alpha``; return what tells logits apart."""
    logits = step.token_logits
    if not on_a_device(logits):
        logits = to_array(logits)
    shape = () if logits is None else tuple(logits.shape)
    everywhere = np.ones(n, dtype=bool)
    if logits is None or len(shape) != 3 or shape[0] != n or shape[1] < 1 or shape[2] < 2:
        note(faults, "LOGITS_SHAPE", everywhere)
        return None
    tokens, v = shape[1:]
    span = None if step.action_token_range is None else span_of(step.action_token_range)
    fits = span is None or 0 <= span[0] < span[1] - 1 < v
    span = span if fits else None
    ids: FloatArray | None = None
    valid: Mask = everywhere
    if step.token_ids is not None:
        ids = rows(step.token_ids, n, (tokens,), "X", {})
        with np.errstate(invalid="ignore"):
            columns = (ids >= 0) & (ids < v) & (ids == np.floor(ids))
        valid = np.asarray(columns.all(axis=1), dtype=np.bool_)
    index = None if ids is None else np.where(valid[:, None], ids, 0).astype(np.int64).reshape(-1)
    table = table_of(logits.reshape(n * tokens, v), index, span, scratch)
    # The first half is of all classes, the second, where there is one, of the bins alone.
    table = table.reshape(len(table), -1, n, tokens)
    whole, log_zs = table[VALUES], table[LOG_Z]
    largest, top = table[LARGEST], table[TOP, 0]
    bad: Mask = np.asarray(~np.isfinite(largest[0]).all(axis=1))
    if not fits:
        note(faults, "LOGITS_SHAPE", ~bad)
    stats, log_z = whole[:, 0], log_zs[0]
    stats[:, bad] = np.nan
    log_z[bad] = np.nan
    _pool(stats, FULL, values)
    mass, outside = np.full((2, n), np.nan)
    if span is not None:
        hollow = ~np.isfinite(largest[1]).all(axis=1)
        few = whole[:, 1]
        few[:, hollow | bad] = np.nan
        _pool(few, BINS, values)
        share = np.minimum(np.exp(log_zs[1] - log_z), 1.0)
        mass = np.where(hollow, 0.0, share.min(axis=1))
        beside = (top < span[0]) | (top >= span[1])
        if index is not None:
            picked = index.reshape(n, tokens)
            beside |= valid[:, None] & ((picked < span[0]) | (picked >= span[1]))
        off = beside.sum(axis=1)
        outside = np.where(off > 0, off, np.nan)
    else:
        if fits:
            mass = np.ones(n)
        for (mean, most), (mean_bins, most_bins) in zip(FULL, BINS, strict=True):
            values[mean_bins] = values[mean] if fits else np.full(n, np.nan)
            values[most_bins] = values[most] if fits else np.full(n, np.nan)
    mass[bad] = outside[bad] = np.nan
    values["action_mass"], values["tokens_outside"] = mass, outside
    if index is not None:
        note(faults, "TOKEN_IDS", ~valid & ~bad)
        good = valid & ~bad
        chosen = table[CHOSEN, 0]
        alpha[good] = np.minimum(np.exp((chosen - log_z)[good].sum(axis=1) / tokens), 1.0)
    values["alpha"] = alpha
    note(faults, "NONFINITE_LOGITS", bad)
    prints: NDArray[np.float64] = np.concatenate([*stats, log_z], axis=1)
    return prints


def _pool(
    stats: FloatArray, keys: tuple[tuple[str, str], ...], values: dict[str, FloatArray]
) -> None:
    """Write mean and maximum over tokens; tokens outermost, so that environments run innermost."""
    by_token = np.ascontiguousarray(stats.transpose(2, 0, 1))
    means, largest = by_token.sum(axis=0) / len(by_token), by_token.max(axis=0)
    for k, (mean, most) in enumerate(keys):
        values[mean], values[most] = means[k], largest[k]
