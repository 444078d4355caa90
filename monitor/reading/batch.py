"""The steps of N robots as arrays with NaN for unknown, and masks of the faults seen in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.chunk_consistency import chunk_inconsistency
from monitor.metrics.sample_spread import execution_variability
from monitor.reading.actions import as_actions, normalise
from monitor.reading.arrays import to_array, to_scalar
from monitor.reading.checks import (
    ACTION,
    GOAL_DISTANCE,
    GRIPPER,
    LATENCY,
    ORIENTATION,
    POSITION,
    UNIT_TOLERANCE,
    Check,
)
from monitor.reading.images import as_pixels, image_values
from monitor.reading.logits.digest import (
    BIN_IDS,
    POOLED_IDS,
    REST,
    as_logits,
    class_ids,
    digest_logits,
    span_within,
)
from monitor.records import FloatArray, Step

__all__ = ["Batch", "BatchReader", "Mask", "note"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """What is kept of one step of N robots; NaN is unknown.

    Attributes:
        action: ``(N, D)`` in environment units.
        position: ``(N, 3)`` of the tool, metres.
        orientation: ``(N, 4)`` of the tool, unit quaternion w, x, y, z.
        goal_distance: ``(N,)`` metres.
        gripper: ``(N,)`` measured opening in [0, 1].
        latency_s: ``(N,)`` seconds.
        success: ``(N,)`` the task's own verdict, true beyond 0.5.
        logits_id: ``(N,)`` fingerprints of the logits.
        image_id: ``(N,)`` fingerprints of the images.
        image_std: ``(N,)`` standard deviations of the images' values, on the scale 0 to 255.
        values: ``(N,)`` by metric id.
        faults: ``(N,)`` by code: where the fault is present.
    """

    action: FloatArray
    position: FloatArray
    orientation: FloatArray
    goal_distance: FloatArray
    gripper: FloatArray
    latency_s: FloatArray
    success: FloatArray
    logits_id: FloatArray
    image_id: FloatArray
    image_std: FloatArray
    values: dict[str, FloatArray] = field(default_factory=dict)
    faults: dict[str, Mask] = field(default_factory=dict)


@final
class BatchReader:
    """Reads N robots' steps as :class:`~monitor.reading.step.StepReader` reads each of them."""

    def __init__(self, low: FloatArray, high: FloatArray, n: int) -> None:
        """Load what is compiled.

        Args:
            low: ``(D,)`` low end of the action space.
            high: ``(D,)`` high end.
            n: Number of robots.
        """
        self._low, self._high, self._n = low, high, n
        self._last_chunk: FloatArray | None = None
        digest_logits(np.zeros((1, 2), np.float32), None, None)

    def reset(self, which: Mask) -> None:
        """Begin an episode of some robots."""
        if self._last_chunk is not None:
            self._last_chunk[which] = np.nan

    def read(self, step: Step) -> Batch:
        """Return the arrays of ``step``, whose fields have a leading axis of N; never raises."""
        # Infinities among what is added up are what this looks for.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._read(step)

    def _read(self, step: Step) -> Batch:
        n, faults = self._n, dict[str, Mask]()
        values: dict[str, FloatArray] = {}
        action = _rows(ACTION, step.action, (n, len(self._low)), faults)
        position = _rows(POSITION, step.tcp_position, (n, 3), faults)
        orientation = _rows(ORIENTATION, step.tcp_quaternion, (n, 4), faults)
        if step.tcp_quaternion is not None:
            _make_unit(orientation, faults)
        goal_distance = _rows(GOAL_DISTANCE, step.goal_distance, (n,), faults)
        gripper = _rows(GRIPPER, step.gripper, (n,), faults)
        latency = _rows(LATENCY, step.latency_s, (n,), faults)
        logits_id = _read_logits(step, n, values, faults)
        image_id, image_std = _read_images(step.image, n, faults)
        self._read_samples(step.samples, values, faults)
        self._read_chunk(step.chunk, values, faults)
        return Batch(
            action=action,
            position=position,
            orientation=orientation,
            goal_distance=goal_distance,
            gripper=gripper,
            latency_s=latency,
            success=_read_success(step.success, n, faults),
            logits_id=logits_id,
            image_id=image_id,
            image_std=image_std,
            values=values,
            faults=faults,
        )

    def _read_samples(
        self, value: Any, values: dict[str, FloatArray], faults: dict[str, Mask]
    ) -> None:
        samples = self._actions("SAMPLES", value, faults)
        if samples is not None:
            values["EV"] = execution_variability(samples)
            finite = ~np.isnan(samples[:, 0, 0])
            note(faults, "EV_UNINFORMATIVE", np.isnan(values["EV"]) & finite)

    def _read_chunk(
        self, value: Any, values: dict[str, FloatArray], faults: dict[str, Mask]
    ) -> None:
        last, chunk = self._last_chunk, self._actions("CHUNK", value, faults)
        self._last_chunk = chunk
        if chunk is not None and last is not None:
            gap = chunk_inconsistency(last, chunk)
            if gap is not None:
                values["CHUNK"] = gap

    def _actions(self, kind: str, value: Any, faults: dict[str, Mask]) -> FloatArray | None:
        """Return ``(N, K, D)`` actions on [0, 1]."""
        if value is None:
            return None
        actions = as_actions(value, len(self._low), self._n)
        if actions is None:
            note(faults, f"{kind}_SHAPE", np.ones(self._n, dtype=bool))
            return None
        bad = np.asarray(~np.isfinite(actions).all(axis=(1, 2)))
        note(faults, f"NONFINITE_{kind}", bad)
        actions[bad] = np.nan
        return normalise(actions, self._low, self._high)


def note(faults: dict[str, Mask], code: str, where: Mask) -> None:
    """Add a fault where it is present."""
    if where.any():
        faults[code] = faults[code] | where if code in faults else where


def _rows(check: Check, value: Any, shape: tuple[int, ...], faults: dict[str, Mask]) -> FloatArray:
    """Return numbers that fulfil the check, a whole row NaN where any of it does not."""
    if value is None:
        return np.full(shape, np.nan)
    rows = _finite_rows(check.kind, value, shape, faults)
    if check.limited:
        beyond = np.asarray((rows < check.low) | (rows > check.high))
        beyond = beyond if rows.ndim == 1 else np.asarray(beyond.any(axis=1))
        note(faults, f"{check.kind}_RANGE", beyond)
        rows[beyond] = np.nan
    return rows


def _finite_rows(
    kind: str, value: Any, shape: tuple[int, ...], faults: dict[str, Mask]
) -> FloatArray:
    # Finite numbers have a finite sum; where it is not finite, a look at each decides.
    if type(value) is np.ndarray and value.dtype == np.float64 and value.shape == shape:
        total = np.add.reduce(value, axis=None)
        if total - total == 0.0:
            return value.copy()
    out = np.full(shape, np.nan)
    array = to_array(value)
    if array is not None and len(shape) == 1 and array.shape == (*shape, 1):
        array = array[:, 0]
    if array is None or array.shape != shape:
        note(faults, f"{kind}_SHAPE", np.ones(len(out), dtype=bool))
        return out
    finite = np.isfinite(array)
    good = finite if len(shape) == 1 else np.asarray(finite.all(axis=1))
    out[good] = array[good]
    note(faults, f"NONFINITE_{kind}", ~good)
    return out


def _make_unit(q: FloatArray, faults: dict[str, Mask]) -> None:
    """Normalise quaternions ``(N, 4)``; those far from unit norm become NaN."""
    # In the order in which one robot's is computed, for the same bits.
    w, x, y, z = q.T
    norm = np.sqrt(w * w + x * x + y * y + z * z)
    bent = np.abs(norm - 1.0) > UNIT_TOLERANCE
    note(faults, f"{ORIENTATION.kind}_RANGE", bent)
    norm[bent] = np.nan
    q /= norm[:, None]


def _read_success(value: Any, n: int, faults: dict[str, Mask]) -> FloatArray:
    if value is None:
        return np.full(n, np.nan)
    seen: dict[str, Mask] = {}
    if n == 1 and to_scalar(value) is not None:
        value = [value]
    success = _finite_rows("SUCCESS", value, (n,), seen)
    if "SUCCESS_SHAPE" in seen:  # NaN is not a fault, but a robot without a verdict
        note(faults, "SUCCESS_SHAPE", seen["SUCCESS_SHAPE"])
    return success


def _read_logits(
    step: Step, n: int, values: dict[str, FloatArray], faults: dict[str, Mask]
) -> FloatArray:
    """Write the token metrics and return the fingerprints of the logits."""
    if step.token_logits is None:
        return np.full(n, np.nan)
    logits = as_logits(step.token_logits)
    shape = () if logits is None else tuple(logits.shape)
    if len(shape) != 3 or shape[0] != n or shape[1] < 1 or shape[2] < 2:
        note(faults, "LOGITS_SHAPE", np.ones(n, dtype=bool))
        return np.full(n, np.nan)
    count, v = shape[1:]
    given = step.action_token_range
    span = None if given is None else span_within(given, v)
    ids = None if step.token_ids is None else class_ids(step.token_ids, (n, count))
    flat = logits.reshape(n * count, v)
    summaries, _ = digest_logits(flat, ids, span, groups=n, by_token=False)
    # Robots innermost from here on.
    columns = np.ascontiguousarray(summaries.T)
    found: dict[str, FloatArray] = dict(zip((*POOLED_IDS, *REST), columns, strict=True))
    fingerprint, unusable, ids_fit = (
        found.pop(name) for name in ("fingerprint", "unusable", "ids_fit")
    )
    bad = unusable > 0.0
    if given is not None and span is None:
        note(faults, "LOGITS_SHAPE", ~bad)
        for name in (*BIN_IDS, "action_mass"):
            found[name][:] = np.nan
    if ids is not None:
        note(faults, "TOKEN_IDS", (ids_fit == 0.0) & ~bad)
    note(faults, "NONFINITE_LOGITS", bad)
    values.update(found)
    return fingerprint


def _read_images(images: Any, n: int, faults: dict[str, Mask]) -> tuple[FloatArray, FloatArray]:
    """Return fingerprints and standard deviations of images ``(N, H, W, 3)``."""
    unknown = np.full(n, np.nan)
    if images is None:
        return unknown, unknown
    pixels = as_pixels(images, n)
    if pixels is None:
        note(faults, "CAMERA_FORMAT", np.ones(n, dtype=bool))
        return unknown, unknown
    ids, deviations = zip(*map(image_values, pixels), strict=True)
    return np.array(ids, dtype=np.float64), np.array(deviations)
