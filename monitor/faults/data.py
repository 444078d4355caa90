"""Faults of one step's data: errors, unusable actions, and what reading the raw step showed.

ACTION_RANGE is a stage of its own, :mod:`monitor.faults.action_range`.
"""

from __future__ import annotations

import re
from typing import Final

from monitor.config import Response
from monitor.records import Evidence, Fault
from monitor.stage.base import make_fault
from monitor.stage.info import FaultInfo

CODED: Final = re.compile(r"^([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+):")
"""A policy may begin its error with its own code, as in ``STALE_ACTION: ...``."""
KNOWN: Final = frozenset({"STALE_ACTION", "MALFORMED_TOKENS"})

ACTIONLESS: Final = frozenset(
    {
        "POLICY_ERROR",
        "STALE_ACTION",
        "MALFORMED_TOKENS",
        "NONFINITE_ACTION",
        "ACTION_SHAPE",
        "ENV_ERROR",
    }
)
"""Faults that already say why there is no action."""


def _row(code: str, meaning: str, field: str = "", response: Response = "alert") -> FaultInfo:
    return FaultInfo(code=code, family="data", meaning=meaning, field=field, response=response)


INFOS: Final = (
    _row("POLICY_ERROR", "the policy raised an error", "policy_error", "halt"),
    _row("ENV_ERROR", "the environment raised an error", "env_error", "halt"),
    _row("STALE_ACTION", "the reply belongs to an earlier request", "policy_error", "recover"),
    _row("MALFORMED_TOKENS", "the tokens do not decode to an action", "decode_ok", "recover"),
    _row("ACTION_MISSING", "there is no action", "action", "halt"),
    _row("ACTION_SHAPE", "the action has the wrong length", "action", "halt"),
    _row("NONFINITE_ACTION", "the action has a NaN or an infinity", "action", "halt"),
    _row("NONFINITE_LOGITS", "logits are NaN, +inf or only -inf", "token_logits", "recover"),
    _row("LOGITS_SHAPE", "logits or the range of action tokens do not fit", "token_logits"),
    _row("TOKEN_IDS", "the chosen ids are not columns of the logits", "token_ids"),
    _row("NONFINITE_POSE", "a pose with a NaN or an infinity", "tcp_position"),
    _row("POSE_SHAPE", "a pose of the wrong length", "tcp_position"),
    _row("POSE_RANGE", "a position too far away, or a quaternion that is not unit", "tcp_position"),
    _row("NONFINITE_DISTANCE", "a goal distance that is not finite", "goal_distance"),
    _row("DISTANCE_SHAPE", "a goal distance that is not one number", "goal_distance"),
    _row("DISTANCE_RANGE", "a goal distance that is negative or too large", "goal_distance"),
    _row("NONFINITE_GRIPPER", "an opening that is not finite", "gripper"),
    _row("GRIPPER_SHAPE", "an opening that is not one number", "gripper"),
    _row("NONFINITE_LATENCY_VALUE", "a latency that is not finite", "latency_s"),
    _row("LATENCY_VALUE_SHAPE", "a latency that is not one number", "latency_s"),
    _row("LATENCY_VALUE_RANGE", "a negative latency", "latency_s"),
    _row("SUCCESS_SHAPE", "a verdict that cannot be read", "success"),
    _row("NONFINITE_SAMPLES", "sampled actions that are not finite", "samples"),
    _row("SAMPLES_SHAPE", "sampled actions of the wrong shape", "samples"),
    _row("NONFINITE_CHUNK", "an action chunk that is not finite", "chunk"),
    _row("CHUNK_SHAPE", "an action chunk of the wrong shape", "chunk"),
    _row("EV_UNINFORMATIVE", "samples without any difference", "samples", "ignore"),
    _row("CAMERA_FORMAT", "an image that is not (H, W, 3) uint8", "image"),
    FaultInfo(code="METRIC_ERROR", family="", meaning="a plugin's metric raised an error"),
    FaultInfo(code="DETECTOR_ERROR", family="", meaning="a plugin's detector raised an error"),
    FaultInfo(
        code="RECOVERY_ERROR",
        family="",
        meaning="a plugin's recovery raised an error or gave an unusable action; it always halts",
        response="halt",
    ),
    FaultInfo(code="SCORER_ERROR", family="", meaning="a plugin's scorer raised an error"),
)


def data_faults(evidence: Evidence, step: int) -> list[Fault]:
    """Return the faults of one step's data."""
    found = list(evidence.problems)
    if evidence.policy_error is not None:
        error = evidence.policy_error
        found.append(make_fault(error_code(error), step, error, "policy_error", value=error))
    if evidence.env_error is not None:
        error = evidence.env_error
        found.append(make_fault("ENV_ERROR", step, error, "env_error", value=error))
    if not evidence.decode_ok:
        text = "the tokens do not decode to an action"
        found.append(make_fault("MALFORMED_TOKENS", step, text, "decode_ok", value=False))
    if evidence.action is None and not any(one.code in ACTIONLESS for one in found):
        found.append(make_fault("ACTION_MISSING", step, "there is no action", "action"))
    return found


def error_code(text: str) -> str:
    """Return the fault code of what a policy raised.

    >>> error_code("STALE_ACTION: reply 1 to request 2"), error_code("boom")
    ('STALE_ACTION', 'POLICY_ERROR')
    """
    given = CODED.match(text)
    return given.group(1) if given and given.group(1) in KNOWN else "POLICY_ERROR"
