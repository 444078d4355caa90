"""From the raw step to the evidence that is kept: the only place that reads big arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, Final, final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.plugins import MetricPlugin, measure
from monitor.metrics.sample_spread import chunk_inconsistency, execution_variability, normalise
from monitor.metrics.token_uncertainty import NAMES
from monitor.reading.arrays import holes, text, to_array, to_row, to_scalar
from monitor.reading.extra import read_extra
from monitor.reading.logits.compiled import (
    ALPHA,
    BAD,
    FITTING,
    OF_BINS,
    OUTSIDE,
    POOLED,
    PRINT,
    SHARE,
)
from monitor.reading.logits.plain import SINGLE, Scratch, digest_of, on_a_device
from monitor.records import Evidence, Fault, FloatArray, Numbers, Step

FARTHEST_M: Final = 1e4
"""A position or distance beyond this is a broken sensor, not a place."""
UNIT_TOLERANCE: Final = 0.05
"""How far a quaternion's norm may be from 1; within it, it is normalised."""
PIXELS: Final = 4096
"""Values of a picture that its standard deviation is taken over."""

FARTHEST_ID: Final = 2.0**53
"""Beyond it, not every whole number is a float64."""
DOUBLE: Final = np.dtype(np.float64)
LONG: Final = np.dtype(np.int64)

OF_ALL_KEYS: Final = tuple(f"{name}{end}" for name in NAMES for end in ("", "_max"))
BIN_NAMES: Final = tuple(f"{name}_bins" for name in NAMES)
OF_BINS_KEYS: Final = tuple(f"{name}{end}" for name in BIN_NAMES for end in ("", "_max"))
KEYS: Final = (*OF_ALL_KEYS, *OF_BINS_KEYS, "action_mass")
"""Ids of the first columns of pooled logits, see :mod:`monitor.reading.logits.compiled`."""


@final
class Extractor:
    """Reduces steps to evidence."""

    def __init__(
        self, low: FloatArray, high: FloatArray, plugins: Sequence[MetricPlugin] = ()
    ) -> None:
        self._low = low
        self._high = high
        self._dim = len(low)
        self._plugins = plugins
        self._scratch = Scratch()
        # What is compiled is loaded now: it may take seconds, which no step may.
        digest_of(np.zeros((1, 2), np.float32), None, None, self._scratch)
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._last_chunk: FloatArray | None = None
        for plugin in self._plugins:
            plugin.reset()

    def extract(self, step: Step, index: int) -> Evidence:
        """Return the evidence of ``step``, the ``index``-th of its episode; never raises."""
        problems: list[Fault] = []
        signals: dict[str, float | None] = {}
        tokens: dict[str, Numbers] = {}
        action = None
        decode_ok = step.decode_ok is True or _truth(step.decode_ok) is True
        if step.action is not None:
            action = self._numbers("ACTION", "action", step.action, self._dim, index, problems)
            if not decode_ok:
                # The wrong number of values is what the policy itself calls malformed tokens.
                problems = [one for one in problems if one.code != "ACTION_SHAPE"]
        position = quaternion = distance = gripper = latency = None
        if step.tcp_position is not None:
            position = self._numbers("POSE", "tcp_position", step.tcp_position, 3, index, problems)
            if position is not None and not (
                min(position) >= -FARTHEST_M and max(position) <= FARTHEST_M
            ):
                problems.append(_fault("POSE_RANGE", index, "tcp_position", list(position)))
                position = None
        if step.tcp_quaternion is not None:
            quaternion = self._numbers(
                "POSE", "tcp_quaternion", step.tcp_quaternion, 4, index, problems
            )
            if quaternion is not None:
                quaternion = _unit(quaternion, index, problems)
        if step.goal_distance is not None:
            distance = _number("DISTANCE", "goal_distance", step.goal_distance, index, problems)
            if distance is not None and not 0.0 <= distance <= FARTHEST_M:
                problems.append(_fault("DISTANCE_RANGE", index, "goal_distance", distance))
                distance = None
        if step.gripper is not None:
            gripper = _number("GRIPPER", "gripper", step.gripper, index, problems)
        if step.latency_s is not None:
            latency = _number("LATENCY_VALUE", "latency_s", step.latency_s, index, problems)
            if latency is not None and latency < 0.0:
                problems.append(_fault("LATENCY_VALUE_RANGE", index, "latency_s", latency))
                latency = None
        success = _truth(step.success)
        if success is None and step.success is not None and to_scalar(step.success) is None:
            seen = type(step.success).__name__
            problems.append(_fault("SUCCESS_SHAPE", index, "success", seen, expected=[]))
        logits_id = image_id = image_std = None
        if step.token_logits is not None:
            logits_id = _read_logits(step, index, self._scratch, signals, tokens, problems)
        if step.image is not None:
            image_id, image_std = _read_image(step.image, index, problems)
        if step.samples is not None:
            self._read_samples(step.samples, index, signals, problems)
        if step.chunk is not None or self._last_chunk is not None:
            self._read_chunk(step.chunk, index, signals, problems)
        if step.extra is not None:
            read_extra(step.extra, index, signals, problems)
        for plugin in self._plugins:
            measure(plugin, step, index, signals, problems)
        return Evidence(
            action=action,
            tcp_position=position,
            tcp_quaternion=quaternion,
            goal_distance=distance,
            gripper=gripper,
            latency_s=latency,
            success=success,
            policy_error=None if step.policy_error is None else words(step.policy_error),
            env_error=None if step.env_error is None else words(step.env_error),
            decode_ok=decode_ok,
            signals=signals,
            tokens=tokens,
            logits_id=logits_id,
            image_id=image_id,
            image_std=image_std,
            problems=tuple(problems),
        )

    def _read_samples(
        self, value: Any, index: int, signals: dict[str, float | None], problems: list[Fault]
    ) -> None:
        samples = self._actions("SAMPLES", "samples", value, index, problems)
        if samples is None:
            return
        signals["EV"] = execution_variability(samples)
        if signals["EV"] is None:
            text = f"{len(samples)} samples without any difference: EV says nothing"
            problems.append(_fault("EV_UNINFORMATIVE", index, "samples", text))

    def _read_chunk(
        self, value: Any, index: int, signals: dict[str, float | None], problems: list[Fault]
    ) -> None:
        chunk = None
        if value is not None:
            chunk = self._actions("CHUNK", "chunk", value, index, problems)
        if chunk is not None and self._last_chunk is not None:
            signals["CHUNK"] = chunk_inconsistency(self._last_chunk, chunk)
        self._last_chunk = chunk

    def _actions(
        self, kind: str, field: str, value: Any, index: int, problems: list[Fault]
    ) -> FloatArray | None:
        """Return ``(K, D)`` actions on [0, 1]."""
        array = to_array(value)
        if array is None or array.ndim != 2 or array.shape[1] != self._dim or len(array) == 0:
            expected = ["K", self._dim]
            problems.append(_fault(f"{kind}_SHAPE", index, field, _shape(value), expected=expected))
            return None
        if not np.isfinite(array).all():
            rows = np.flatnonzero(~np.isfinite(array).all(axis=1)).tolist()
            problems.append(_fault(f"NONFINITE_{kind}", index, field, "not finite", rows=rows))
            return None
        # In one order, as the last bit of a mean depends on it.
        return normalise(array.astype(np.float64, order="C"), self._low, self._high)

    @staticmethod
    def _numbers(
        kind: str, field: str, value: Any, size: int, index: int, problems: list[Fault]
    ) -> Numbers | None:
        row: list[float] | None
        if type(value) is np.ndarray and value.dtype is DOUBLE and value.shape == (size,):
            row = value.tolist()  # the usual case, without a detour
        else:
            row = to_row(value, size)
        if row is None:
            seen = str(_shape(value))
            problems.append(_fault(f"{kind}_SHAPE", index, field, seen, expected=[size]))
            return None
        # A sum that is finite has finite parts; one that is not may be of huge parts.
        total = sum(row)
        if total - total != 0.0 and holes(row):
            problems.append(_fault(f"NONFINITE_{kind}", index, field, text(row), dims=holes(row)))
            return None
        return tuple(row)


def words(error: Any) -> str:
    """Return the text of an error, even of one that fails to say it.

    >>> words(ValueError("boom"))
    'boom'
    """
    try:
        return str(error)
    except Exception:  # foreign code may raise anything
        return f"{type(error).__name__}, whose text cannot be had"


def _fault(code: str, index: int, field: str, value: Any, **more: Any) -> Fault:
    extra = "".join(f", {key} {item}" for key, item in more.items())
    return Fault(
        code=code,
        message=f"step {index}: {field} is {value}{extra}",
        detail={"step": index, "field": field, "value": value, **more},
    )


def _shape(value: Any) -> list[int] | str:
    """Return the shape of what was given, or what it is where it has none."""
    try:
        return [int(size) for size in value.shape]
    except Exception:  # no array, or a foreign one with a shape of its own kind
        return type(value).__name__


def _number(kind: str, field: str, value: Any, index: int, problems: list[Fault]) -> float | None:
    number = value if type(value) is float else to_scalar(value)
    if number is None:
        problems.append(_fault(f"{kind}_SHAPE", index, field, type(value).__name__, expected=[]))
    elif 0.0 * number != 0.0:
        problems.append(_fault(f"NONFINITE_{kind}", index, field, repr(number)))
        number = None
    return number


def _unit(q: Numbers, index: int, problems: list[Fault]) -> Numbers | None:
    w, x, y, z = q
    norm = sqrt(w * w + x * x + y * y + z * z)
    if abs(norm - 1.0) > UNIT_TOLERANCE:
        norm = norm if max(map(abs, q)) < 1e3 else FARTHEST_M
        problems.append(_fault("POSE_RANGE", index, "tcp_quaternion", list(q), norm=norm))
        return None
    return w / norm, x / norm, y / norm, z / norm


def _truth(value: Any) -> bool | None:
    if value is None or value is True or value is False:
        return value
    number = to_scalar(value)
    return None if number is None or number != number else number > 0.5


def _read_logits(
    step: Step,
    index: int,
    scratch: Scratch,
    signals: dict[str, float | None],
    tokens: dict[str, Numbers],
    problems: list[Fault],
) -> int | None:
    logits = step.token_logits
    if not (type(logits) is np.ndarray and logits.dtype is SINGLE) and not on_a_device(logits):
        logits = to_array(logits)
    shape: tuple[int, ...] = () if logits is None else logits.shape
    if len(shape) != 2 or shape[0] < 1 or shape[1] < 2:
        seen = _shape(step.token_logits)
        problems.append(_fault("LOGITS_SHAPE", index, "token_logits", seen, expected="(N, V)"))
        return None
    count, v = shape
    span, misfit = None, False
    if step.action_token_range is not None:
        low, high = span_of(step.action_token_range)
        misfit = not 0 <= low < high - 1 < v
        span = None if misfit else (low, high)
    ids = None if step.token_ids is None else _columns(step.token_ids, count)
    rows = SHARE if span is None else SHARE + 1
    row: list[float] = digest_of(logits, ids, span, scratch, rows=rows)[0].tolist()
    if row[BAD]:
        bad = holes(row[POOLED : POOLED + count])
        problems.append(
            _fault("NONFINITE_LOGITS", index, "token_logits", "NaN, +inf or only -inf", tokens=bad)
        )
        return None
    hollow = row[OF_BINS] != row[OF_BINS]
    signals.update(zip(OF_ALL_KEYS if hollow or misfit else KEYS, row, strict=False))
    if hollow:
        signals["action_mass"] = 0.0
    if row[FITTING] == 1.0:
        signals["alpha"] = row[ALPHA]
    if row[OUTSIDE] > 0.0:
        signals["tokens_outside"] = row[OUTSIDE]
    values = tuple(row)
    width = count if span is None else 2 * count
    for begin, name in zip(range(POOLED, len(row), width), NAMES, strict=False):
        tokens[name] = values[begin : begin + count]
    if span is not None and not hollow:
        for begin, name in zip(range(POOLED + count, len(row), width), BIN_NAMES, strict=False):
            tokens[name] = values[begin : begin + count]
        begin = POOLED + SHARE * width
        tokens["action_mass"] = values[begin : begin + count]
    if misfit:
        given = str(step.action_token_range)[:80]
        problems.append(_fault("LOGITS_SHAPE", index, "action_token_range", given))
    if step.token_ids is not None and row[FITTING] != 1.0:
        ids_given = str(step.token_ids)[:80]
        problems.append(_fault("TOKEN_IDS", index, "token_ids", ids_given, expected=[count, v]))
    return int(row[PRINT])


def span_of(given: Any) -> tuple[int, int]:
    """Return the two ends of a range, (-1, -1) where it is none."""
    try:
        low, high = given
        return int(low), int(high)
    except Exception:  # whatever it is, it is no range
        return -1, -1


def _columns(given: Any, count: int) -> NDArray[np.int64] | None:
    """Return the chosen ids, ``(count,)``, None where they are no whole numbers."""
    if type(given) is np.ndarray and given.dtype == LONG and given.shape == (count,):
        return given
    row = to_row(given, count)
    # Beyond 2^53 no float is a class.
    if row is None or not all([0.0 <= x < FARTHEST_ID and x.is_integer() for x in row]):
        return None
    return np.array(row, dtype=np.int64)


def _read_image(image: Any, index: int, problems: list[Fault]) -> tuple[int | None, float | None]:
    array = to_array(image)
    right = array is not None and array.ndim == 3 and array.shape[2] == 3 and array.size > 0
    if array is None or not right or array.dtype != np.uint8:
        seen = _shape(image) if array is None else f"{_shape(array)} {array.dtype}"
        expected = "(H, W, 3) uint8"
        problems.append(_fault("CAMERA_FORMAT", index, "image", seen, expected=expected))
        return None, None
    flat = np.ascontiguousarray(array).reshape(-1)
    sample = flat[:: max(1, flat.size // PIXELS)].astype(np.float64)
    # Whole numbers of this size are added up and multiplied without rounding.
    count, total, squares = len(sample), sample.sum(), sample.dot(sample)
    return crc32(flat.data), sqrt(count * squares - total * total) / count
