"""Read the requests that pass through, and decide where an episode begins."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

import numpy as np

from monitor.errors import ConfigError, unknown_name
from policies import Observation
from policies.wire.codec import WireFormatError, decode
from policies.wire.keys import KeyMap, find, ours
from policies.wire.messages import observation_of

__all__ = ["SPLITS", "ClientEnvInfo", "Request", "Split", "read_request"]

SPLITS: Final = ("reset", "prompt")
"""Events that may begin an episode within a connection; a new connection always does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEnvInfo:
    """A client's environment, as declared by a vlawatch client or by the user of any other one.

    Attributes:
        action_low: lower end of the action space, ``(D,)``.
        action_high: upper end of the action space, ``(D,)``.
        control_dt_s: control period in seconds; None if it is not declared.
        robot: name in :data:`envs.robot.ROBOTS`; None if it is not declared.
    """

    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    control_dt_s: float | None
    robot: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """A client's frame as far as it can be read; it passes through in any case.

    Attributes:
        frame: the frame as it arrived.
        number: sequence number; None from a client that does not count its requests.
        resets: whether it begins an episode instead of asking for an action.
        instruction: instruction text; None if there is none.
        env: environment declared with a reset.
        observation: input of the policy; None if it cannot be read.
        success: the task's own verdict, from a client that reports it.
        goal_distance: metres, from a client that reports it.
        problem: what could not be read; empty if everything could.
        arrived: time of arrival, seconds of the monotonic clock.
    """

    frame: bytes | str
    number: int | None = None
    resets: bool = False
    instruction: str | None = None
    env: ClientEnvInfo | None = None
    observation: Observation | None = None
    success: bool | None = None
    goal_distance: float | None = None
    problem: str = ""
    arrived: float = field(default_factory=monotonic)


def read_request(frame: bytes | str, keys: KeyMap) -> Request:
    """Read a client's frame; never raises.

    Args:
        frame: the frame as it arrived.
        keys: key map of the client's messages.
    """
    try:
        message = decode(frame)
    except WireFormatError as error:
        return Request(frame=frame, problem=str(error))
    number = message.get(ours("seq"))
    known: dict[str, Any] = {"frame": frame, "number": number if type(number) is int else None}
    reset = message.get(ours("reset"))
    if reset is not None:
        declared = reset if isinstance(reset, Mapping) else {}
        return Request(
            **known,
            resets=True,
            instruction=_text(declared.get("instruction")),
            env=_env_info(declared.get("env")),
        )
    known["instruction"] = _text(find(message, keys.instruction))
    try:
        known["observation"] = observation_of(message, keys)
    except WireFormatError as error:
        known["problem"] = str(error)
    return Request(
        **known,
        success=_flag(message.get(ours("success"))),
        goal_distance=_number(message.get(ours("goal_distance"))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Rules for where an episode begins within a connection.

    Attributes:
        on: names from :data:`SPLITS`: a reset message, a changed prompt.
        idle_s: length of a pause that also begins an episode, seconds; None for never.
    """

    on: Collection[str] = SPLITS
    idle_s: float | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown name."""
        for name in self.on:
            if name not in SPLITS:
                raise ConfigError(unknown_name("split", name, SPLITS))
        if self.idle_s is not None and not self.idle_s > 0.0:
            msg = f"a pause of {self.idle_s} s splits nothing; give seconds above 0"
            raise ConfigError(msg)

    def before(self, request: Request, instruction: str | None, quiet_since: float) -> bool:
        """Return whether the running episode ends before a request.

        Args:
            request: the next request.
            instruction: instruction of the running episode; None if it has none.
            quiet_since: time of the last answer to the client, seconds of the monotonic clock.

        >>> request = Request(frame=b"", instruction="fold", arrived=9.0)
        >>> Split().before(request, "stack", 8.0), Split(idle_s=2.0).before(request, "fold", 8.0)
        (True, False)
        """
        if request.resets and "reset" in self.on:
            return True
        changed = request.instruction is not None and request.instruction != instruction
        if changed and "prompt" in self.on and not request.resets:
            return True
        return self.idle_s is not None and request.arrived - quiet_since > self.idle_s


def _env_info(given: Any) -> ClientEnvInfo | None:
    if not isinstance(given, Mapping):
        return None
    low, high = given.get("action_low"), given.get("action_high")
    if not isinstance(low, np.ndarray) or not isinstance(high, np.ndarray):
        return None
    if low.dtype.kind not in "fiu" or high.dtype.kind not in "fiu":
        return None
    return ClientEnvInfo(
        action_low=tuple(low.astype(np.float64).ravel().tolist()),
        action_high=tuple(high.astype(np.float64).ravel().tolist()),
        control_dt_s=_number(given.get("control_dt_s")),
        robot=_text(given.get("robot")),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: Any) -> bool | None:
    return bool(value) if isinstance(value, (bool, np.bool_)) else None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    return float(value) if is_number and np.isfinite(value) else None
