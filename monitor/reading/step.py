"""One robot's step, from whatever the loop hands in to the evidence that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, Final, final

import numpy as np

from monitor.metrics.chunk_consistency import chunk_inconsistency
from monitor.metrics.plugins import MetricPlugin, measure
from monitor.metrics.sample_spread import execution_variability
from monitor.metrics.token_uncertainty import TOKEN_METRICS
from monitor.reading.actions import as_actions, normalise
from monitor.reading.arrays import (
    json_ready,
    nonfinite_indices,
    to_array,
    to_row,
    to_scalar,
    words,
)
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
from monitor.reading.extra import read_extra
from monitor.reading.images import EXPECTED, as_pixels, image_values
from monitor.reading.logits.digest import (
    POOLED_IDS,
    WHOLE_IDS,
    as_logits,
    class_ids,
    digest_logits,
    span_within,
)
from monitor.reading.problems import Problems, shape_of
from monitor.records import Evidence, FloatArray, Numbers, Step

__all__ = ["StepReader"]

DOUBLE: Final = np.dtype(np.float64)
LARGEST_NORM: Final = 1e4
"""Stands for the norm of a quaternion of huge numbers, which may overflow."""

Signals = dict[str, float | None]
Tokens = dict[str, Numbers]


@final
class StepReader:
    """Reduces steps to evidence; between steps it keeps the last action chunk alone."""

    def __init__(
        self, low: FloatArray, high: FloatArray, plugins: Sequence[MetricPlugin] = ()
    ) -> None:
        """Load what is compiled, which may take seconds and must not fall into a step.

        Args:
            low: ``(D,)`` low end of the action space.
            high: ``(D,)`` high end.
            plugins: Metrics of the raw step.
        """
        self._low, self._high, self._dim = low, high, len(low)
        self._plugins = plugins
        digest_logits(np.zeros((1, 2), np.float32), None, None)
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._last_chunk: FloatArray | None = None
        for plugin in self._plugins:
            plugin.reset()

    def read(self, step: Step, index: int) -> Evidence:
        """Return the evidence of ``step``, the ``index``-th of its episode; never raises."""
        problems = Problems(index)
        signals: Signals = {}
        tokens: Tokens = {}
        decode_ok = step.decode_ok is True or _truth(step.decode_ok) is True
        action = _row(ACTION, step.action, self._dim, problems)
        if not decode_ok:
            # The wrong number of values is what the policy itself calls malformed tokens.
            problems.found = [one for one in problems.found if one.code != "ACTION_SHAPE"]
        position = _row(POSITION, step.tcp_position, 3, problems)
        orientation = _row(ORIENTATION, step.tcp_quaternion, 4, problems)
        if orientation is not None:
            orientation = _unit(orientation, problems)
        distance = _number(GOAL_DISTANCE, step.goal_distance, problems)
        gripper = _number(GRIPPER, step.gripper, problems)
        latency = _number(LATENCY, step.latency_s, problems)
        success = _truth(step.success)
        if success is None and step.success is not None and to_scalar(step.success) is None:
            problems.add("SUCCESS_SHAPE", "success", type(step.success).__name__, expected=[])
        logits_id = image_id = image_std = None
        if step.token_logits is not None:
            logits_id = _read_logits(step, signals, tokens, problems)
        if step.image is not None:
            image_id, image_std = _read_image(step.image, problems)
        if step.samples is not None:
            self._read_samples(step.samples, signals, problems)
        if step.chunk is not None or self._last_chunk is not None:
            self._read_chunk(step.chunk, signals, problems)
        if step.extra is not None:
            read_extra(step.extra, index, signals, problems.found)
        for plugin in self._plugins:
            measure(plugin, step, index, signals, problems.found)
        return Evidence(
            action=action,
            tcp_position=position,
            tcp_quaternion=orientation,
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
            problems=tuple(problems.found),
        )

    def _read_samples(self, value: Any, signals: Signals, problems: Problems) -> None:
        samples = self._actions("SAMPLES", "samples", value, problems)
        if samples is None:
            return
        variability = float(execution_variability(samples))
        signals["EV"] = variability if variability == variability else None
        if signals["EV"] is None:
            seen = f"{len(samples)} samples without any difference: EV says nothing"
            problems.add("EV_UNINFORMATIVE", "samples", seen)

    def _read_chunk(self, value: Any, signals: Signals, problems: Problems) -> None:
        chunk = None if value is None else self._actions("CHUNK", "chunk", value, problems)
        if chunk is not None and self._last_chunk is not None:
            gap = chunk_inconsistency(self._last_chunk, chunk)
            signals["CHUNK"] = None if gap is None else float(gap)
        self._last_chunk = chunk

    def _actions(self, kind: str, field: str, value: Any, problems: Problems) -> FloatArray | None:
        """Return ``(K, D)`` actions on [0, 1]."""
        actions = as_actions(value, self._dim)
        if actions is None:
            expected = ["K", self._dim]
            problems.add(f"{kind}_SHAPE", field, shape_of(value), expected=expected)
            return None
        finite = np.isfinite(actions).all(axis=1)
        if not finite.all():
            rows = np.flatnonzero(~finite).tolist()
            problems.add(f"NONFINITE_{kind}", field, "not finite", rows=rows)
            return None
        return normalise(actions, self._low, self._high)


def _row(check: Check, value: Any, size: int, problems: Problems) -> Numbers | None:
    """Return ``size`` numbers that fulfil the check."""
    if value is None:
        return None
    row: list[float] | None
    if type(value) is np.ndarray and value.dtype is DOUBLE and value.shape == (size,):
        row = value.tolist()  # the usual case, without a detour
    else:
        row = to_row(value, size)
    if row is None:
        seen = str(shape_of(value))
        problems.add(f"{check.kind}_SHAPE", check.name, seen, expected=[size])
        return None
    # A sum that is finite has finite parts; one that is not may be of huge parts.
    total = sum(row)
    if total - total != 0.0 and (dims := nonfinite_indices(row)):
        problems.add(f"NONFINITE_{check.kind}", check.name, json_ready(row), dims=dims)
        return None
    if check.limited and not (check.low <= min(row) and max(row) <= check.high):
        problems.add(f"{check.kind}_RANGE", check.name, row)
        return None
    return tuple(row)


def _number(check: Check, value: Any, problems: Problems) -> float | None:
    """Return one number that fulfils the check."""
    if value is None:
        return None
    number = value if type(value) is float else to_scalar(value)
    if number is None:
        problems.add(f"{check.kind}_SHAPE", check.name, type(value).__name__, expected=[])
    elif 0.0 * number != 0.0:
        problems.add(f"NONFINITE_{check.kind}", check.name, repr(number))
    elif check.low <= number <= check.high:
        return number
    else:
        problems.add(f"{check.kind}_RANGE", check.name, number)
    return None


def _unit(q: Numbers, problems: Problems) -> Numbers | None:
    w, x, y, z = q
    norm = sqrt(w * w + x * x + y * y + z * z)
    if abs(norm - 1.0) > UNIT_TOLERANCE:
        norm = norm if max(map(abs, q)) < 1e3 else LARGEST_NORM
        problems.add(f"{ORIENTATION.kind}_RANGE", ORIENTATION.name, list(q), norm=norm)
        return None
    return w / norm, x / norm, y / norm, z / norm


def _truth(value: Any) -> bool | None:
    if value is None or value is True or value is False:
        return value
    number = to_scalar(value)
    return None if number is None or number != number else number > 0.5


def _read_logits(step: Step, signals: Signals, tokens: Tokens, problems: Problems) -> int | None:
    """Write the token metrics and return the fingerprint of the logits."""
    logits = as_logits(step.token_logits)
    shape = () if logits is None else tuple(logits.shape)
    if len(shape) != 2 or shape[0] < 1 or shape[1] < 2:
        seen = shape_of(step.token_logits)
        problems.add("LOGITS_SHAPE", "token_logits", seen, expected="(N, V)")
        return None
    count, v = shape
    given = step.action_token_range
    span = None if given is None else span_within(given, v)
    ids = None if step.token_ids is None else class_ids(step.token_ids, (count,))
    summaries, rows = digest_logits(logits, ids, span)
    (summary,) = summaries.tolist()
    mass, alpha, outside, fingerprint, unusable, ids_fit = summary[len(POOLED_IDS) :]
    by_token = list(map(tuple, rows[0].T.tolist()))
    if unusable:
        bad = [i for i, value in enumerate(by_token[0][:count]) if value != value]
        problems.add("NONFINITE_LOGITS", "token_logits", "NaN, +inf or only -inf", tokens=bad)
        return None
    # Without a finite logit among a token's bins, nothing is known of them but that.
    known = summary[len(WHOLE_IDS)] == summary[len(WHOLE_IDS)]
    misfit = given is not None and span is None
    signals.update(zip(POOLED_IDS if known and not misfit else WHOLE_IDS, summary, strict=False))
    if not misfit:
        signals["action_mass"] = mass
    if ids_fit == 1.0:
        signals["alpha"] = alpha
    if outside > 0.0:
        signals["tokens_outside"] = outside
    for name, values in zip(TOKEN_METRICS, by_token, strict=False):
        tokens[name] = values[:count]
    if span is not None and known:
        for name, values in zip(TOKEN_METRICS, by_token, strict=False):
            tokens[f"{name}_bins"] = values[count:]
        tokens["action_mass"] = by_token[-1][:count]
    if misfit:
        problems.add("LOGITS_SHAPE", "action_token_range", str(given)[:80])
    if ids is not None and ids_fit != 1.0:
        problems.add("TOKEN_IDS", "token_ids", str(step.token_ids)[:80], expected=[count, v])
    return int(fingerprint)


def _read_image(image: Any, problems: Problems) -> tuple[int | None, float | None]:
    pixels = as_pixels(image)
    if pixels is not None:
        return image_values(pixels)
    array = to_array(image)
    seen = shape_of(image) if array is None else f"{shape_of(array)} {array.dtype}"
    problems.add("CAMERA_FORMAT", "image", seen, expected=EXPECTED)
    return None, None
