"""Batched steps to arrays with NaN for unknown, and the faults seen on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.arrays import to_array
from monitor.metrics.evidence import BINS, FARTHEST_M, FULL, UNIT_TOLERANCE
from monitor.metrics.tokens import peaks, token_metrics
from monitor.records import FloatArray, Step
from monitor.vector.history import Mask

BLOCK: Final = 32
"""Environments whose logits are worked on at once: few enough to stay in the cache."""


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


def read(step: Step, n: int, dim: int) -> Batch:
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
        printed = read_logits(step, n, values, alpha, faults)
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
    step: Step, n: int, values: dict[str, FloatArray], alpha: FloatArray, faults: dict[str, Mask]
) -> FloatArray | None:
    """Write the token metrics into ``values`` and ``alpha``; return what tells logits apart."""
    logits = to_array(step.token_logits)
    everywhere = np.ones(n, dtype=bool)
    if logits is None or logits.ndim != 3 or len(logits) != n or min(logits.shape[1:]) < 1:
        note(faults, "LOGITS_SHAPE", everywhere)
        return None
    tokens, v = logits.shape[1:]
    if v < 2:
        note(faults, "LOGITS_SHAPE", everywhere)
        return None
    span = step.action_token_range
    if span is not None and not 0 <= span[0] < span[1] - 1 < v:
        note(faults, "LOGITS_SHAPE", everywhere)
        span = None
        bins: slice | None = None
    else:
        bins = slice(0, v) if span is None else slice(*span)
    ids = None if step.token_ids is None else rows(step.token_ids, n, (tokens,), "X", {})
    stats = np.full((4, n, tokens), np.nan)
    inner = np.full((4, n, tokens), np.nan)
    log_z = np.full((n, tokens), np.nan)
    mass, outside = np.full((2, n), np.nan)
    chosen = np.full((n, tokens), np.nan)
    valid = np.zeros(n, dtype=bool)
    if ids is not None:
        with np.errstate(invalid="ignore"):
            valid = ((ids >= 0) & (ids < v) & (ids == np.floor(ids))).all(axis=1)
    bad = np.zeros(n, dtype=bool)
    for begin in range(0, n, BLOCK):
        envs = slice(begin, min(begin + BLOCK, n))
        part = logits[envs]
        flat = part.reshape(-1, v)
        peak = peaks(flat)
        count = len(part)
        broken = ~np.isfinite(peak.value).reshape(count, tokens).all(axis=1)
        if broken.any():
            bad[envs] = broken
            part = part.copy()
            part[broken] = 0.0
            flat = part.reshape(-1, v)
            peak = peaks(flat)
        view = token_metrics(flat, peak)
        stats[:, envs] = view.values.reshape(4, count, tokens)
        log_z[envs] = view.log_z.reshape(count, tokens)
        if ids is not None:
            index = np.where(valid[envs, None], ids[envs], 0).astype(np.int64)
            chosen[envs] = np.take_along_axis(part, index[:, :, None], axis=2)[:, :, 0]
        if span is not None and bins is not None:
            low, high = span
            slim = np.ascontiguousarray(flat[:, bins])
            inside = peaks(slim)
            empty = ~np.isfinite(inside.value)
            if empty.any():
                slim[empty] = 0.0
                inside = peaks(slim)
            few = token_metrics(slim, inside)
            hollow = empty.reshape(count, tokens).any(axis=1)
            inner[:, envs] = few.values.reshape(4, count, tokens)
            inner[:, envs][:, hollow] = np.nan
            share = np.minimum(np.exp(few.log_z - view.log_z), 1.0).reshape(count, tokens)
            mass[envs] = np.where(hollow, 0.0, share.min(axis=1))
            off = ((peak.top < low) | (peak.top >= high)).reshape(count, tokens).sum(axis=1)
            outside[envs] = np.where(off > 0, off, np.nan)
    if span is None and bins is not None:
        inner, mass = stats, np.ones(n)
    stats[:, bad] = np.nan
    inner[:, bad] = mass[bad] = outside[bad] = log_z[bad] = np.nan
    _pool(stats, FULL, values)
    if inner is stats:
        for (mean, most), (mean_bins, most_bins) in zip(FULL, BINS, strict=True):
            values[mean_bins], values[most_bins] = values[mean], values[most]
    else:
        _pool(inner, BINS, values)
    values["action_mass"], values["tokens_outside"] = mass, outside
    if ids is not None:
        note(faults, "TOKEN_IDS", ~valid & ~bad)
        good = valid & ~bad
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
