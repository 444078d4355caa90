"""Faults of one step's data: unusable actions, errors, what the raw step already showed."""

from __future__ import annotations

import re
from typing import final

from monitor.faults.base import Scene, Setting, fault
from monitor.records import Fault

CODED = re.compile(r"^([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+):")
"""A policy may begin its error with a code of its own, as in ``STALE_ACTION: ...``."""
KNOWN = frozenset({"STALE_ACTION", "MALFORMED_TOKENS"})


@final
class DataFaults:
    """POLICY_ERROR, ENV_ERROR, MALFORMED_TOKENS, ACTION_MISSING, ACTION_RANGE and the raw ones."""

    def __init__(self, setting: Setting) -> None:
        slack = setting.config.action_tolerance * (setting.action_high - setting.action_low)
        self._low: list[float] = (setting.action_low - slack).tolist()
        self._high: list[float] = (setting.action_high + slack).tolist()

    def reset(self) -> None:
        """Nothing is kept between steps."""

    def check(self, scene: Scene) -> list[Fault]:
        """Return the faults of this step's data."""
        evidence = scene.evidence
        found = list(evidence.problems)
        if evidence.policy_error is not None:
            code = error_code(evidence.policy_error)
            error = evidence.policy_error
            found.append(fault(code, scene, error, field="policy_error", value=error))
        if evidence.env_error is not None:
            error = evidence.env_error
            found.append(fault("ENV_ERROR", scene, error, field="env_error", value=error))
        if not evidence.decode_ok:
            text = "the tokens do not decode to an action"
            found.append(fault("MALFORMED_TOKENS", scene, text, field="decode_ok", value=False))
        action = evidence.action
        if action is None:
            if not any(one.code in ACTIONLESS for one in found):
                found.append(fault("ACTION_MISSING", scene, "there is no action", field="action"))
            return found
        for x, low, high in zip(action, self._low, self._high, strict=True):
            if not low <= x <= high:
                found.append(self._out_of_range(scene))
                break
        return found

    def _out_of_range(self, scene: Scene) -> Fault:
        action = scene.evidence.action or ()
        dims = [
            i
            for i, (x, low, high) in enumerate(zip(action, self._low, self._high, strict=True))
            if not low <= x <= high
        ]
        text = f"action {list(action)} leaves its space in dims {dims}; what is sent is clipped"
        return fault(
            "ACTION_RANGE", scene, text, field="action", value=[action[i] for i in dims], dims=dims
        )


def error_code(text: str) -> str:
    """Return the fault code of what a policy raised.

    >>> error_code("STALE_ACTION: reply 1 to request 2"), error_code("boom")
    ('STALE_ACTION', 'POLICY_ERROR')
    """
    given = CODED.match(text)
    return given.group(1) if given and given.group(1) in KNOWN else "POLICY_ERROR"


ACTIONLESS = frozenset(
    {
        "POLICY_ERROR",
        "STALE_ACTION",
        "MALFORMED_TOKENS",
        "NONFINITE_ACTION",
        "ACTION_SHAPE",
        "ENV_ERROR",
    }
)
"""Faults that say already why there is no action."""
