"""Steps of N environments made of N streams, taken apart again, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from monitor import Decision, Step
from monitor.vector import VectorDecision

SHARED = ("action_token_range",)
NUMBERS = (
    "action", "tcp_position", "tcp_quaternion", "goal_distance", "gripper", "latency_s", "success",
    "samples", "token_logits",
)  # fmt: skip


def one_of(given: dict[str, Any], i: int) -> Step:
    """The i-th environment's own step."""
    alone: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, dict):
            alone[name] = {key: column[i] for key, column in value.items()}
        else:
            alone[name] = value if name in SHARED or value is None else value[i]
    return Step(**alone)


def stacked(steps: Sequence[Step], span: tuple[int, int] | None, *, holes: bool) -> dict[str, Any]:
    """Fields with a leading axis; where one environment lacks a field, NaN or the other's."""
    given: dict[str, Any] = {"decode_ok": np.array([one.decode_ok for one in steps])}
    for name in NUMBERS:
        column = [getattr(one, name) for one in steps]
        known = [np.asarray(value, dtype=float) for value in column if value is not None]
        if known:
            hole = np.full(known[0].shape, np.nan) if holes else known[0]
            given[name] = np.stack([hole if value is None else value for value in column])
    if "token_logits" in given:
        logits = given["token_logits"] = given["token_logits"].astype(np.float32)
        given["token_ids"] = np.where(np.isnan(logits), -np.inf, logits).argmax(axis=2)
        given["action_token_range"] = span
    images = [one.image for one in steps if one.image is not None]
    if images:
        given["image"] = np.stack([images[0] if one.image is None else one.image for one in steps])
    for name in ("policy_error", "env_error"):
        errors = [getattr(one, name) for one in steps]
        given[name] = errors if any(errors) else None
    return given


def assert_equal(vector: VectorDecision, i: int, single: Decision) -> None:
    """The i-th environment is given what its own monitor gives, to the last bit."""
    seen = {code for code, where in vector.faults.items() if where[i]}
    assert seen == {fault.code for fault in single.faults}
    assert vector.metrics.keys() >= single.metrics.keys()
    for name, column in vector.metrics.items():
        value, theirs = single.metrics.get(name), unknown(column[i])
        assert theirs == value, name
    assert unknown(vector.score[i]) == single.score
    assert vector.modes[i] is single.mode
    assert vector.step[i] == single.step
    assert bool(vector.sendable[i]) == (single.action is not None)
    assert np.isfinite(vector.action[i]).all()
    if single.action is not None:
        assert vector.action[i].tolist() == single.action.tolist()
    began = sorted(code for code, where in vector.began.items() if where[i])
    assert began == sorted({alert.code for alert in single.alerts})


def unknown(x: float) -> float | None:
    """None for NaN, as a single monitor says it."""
    return None if np.isnan(x) else float(x)
