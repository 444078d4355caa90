"""What a passing request says, and where with it an episode begins."""

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

__all__ = ["SPLITS", "EnvTold", "Request", "Split", "read_request"]

SPLITS: Final = ("reset", "prompt")
"""What may begin an episode within a connection; a new connection always does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvTold:
    """What a client of ours says of its environment, or the user of any other.

    Attributes:
        action_low: lower end of the action space, ``(D,)``.
        action_high: upper end.
        control_dt_s: seconds of a step; None where it is not told.
        robot: name of :data:`envs.robot.ROBOTS`; None where it is not told, or is none of them.
    """

    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    control_dt_s: float | None
    robot: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """A client's frame as far as it can be read; it passes in any case.

    Attributes:
        frame: as it came.
        number: of a client that counts; None of any other.
        resets: it asks for no action but begins an episode.
        instruction: the sentence; None where there is none.
        env: told with a reset.
        observation: what the policy sees; None where it cannot be read.
        success: the task's own verdict, of a client that tells it.
        goal_distance: metres, of a client that tells it.
        problem: what could not be read; empty if all could.
        came: seconds of the monotonic clock.
    """

    frame: bytes | str
    number: int | None = None
    resets: bool = False
    instruction: str | None = None
    env: EnvTold | None = None
    observation: Observation | None = None
    success: bool | None = None
    goal_distance: float | None = None
    problem: str = ""
    came: float = field(default_factory=monotonic)


def read_request(frame: bytes | str, keys: KeyMap) -> Request:
    """Read a client's frame; never raises.

    Args:
        frame: as it came.
        keys: of the client's messages.
    """
    try:
        message = decode(frame)
    except WireFormatError as error:
        return Request(frame=frame, problem=str(error))
    number = message.get(ours("seq"))
    known: dict[str, Any] = {"frame": frame, "number": number if type(number) is int else None}
    reset = message.get(ours("reset"))
    if reset is not None:
        told = reset if isinstance(reset, Mapping) else {}
        return Request(
            **known,
            resets=True,
            instruction=_text(told.get("instruction")),
            env=_env_told(told.get("env")),
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
    """Where an episode begins within a connection.

    Attributes:
        on: of :data:`SPLITS`: a reset message, a changed prompt.
        idle_s: also after a pause of this many seconds; None never.
    """

    on: Collection[str] = SPLITS
    idle_s: float | None = None

    def __post_init__(self) -> None:
        """Refuse a name that is none."""
        for name in self.on:
            if name not in SPLITS:
                raise ConfigError(unknown_name("split", name, SPLITS))
        if self.idle_s is not None and not self.idle_s > 0.0:
            msg = f"a pause of {self.idle_s} s splits nothing; give seconds above 0"
            raise ConfigError(msg)

    def before(self, request: Request, instruction: str | None, quiet_since: float) -> bool:
        """Whether an episode ends before a request.

        Args:
            request: the next one.
            instruction: of the episode; None where it has none.
            quiet_since: when the client was last answered, seconds of the monotonic clock.

        >>> request = Request(frame=b"", instruction="fold", came=9.0)
        >>> Split().before(request, "stack", 8.0), Split(idle_s=2.0).before(request, "fold", 8.0)
        (True, False)
        """
        if request.resets and "reset" in self.on:
            return True
        changed = request.instruction is not None and request.instruction != instruction
        if changed and "prompt" in self.on and not request.resets:
            return True
        return self.idle_s is not None and request.came - quiet_since > self.idle_s


def _env_told(given: Any) -> EnvTold | None:
    if not isinstance(given, Mapping):
        return None
    low, high = given.get("action_low"), given.get("action_high")
    if not isinstance(low, np.ndarray) or not isinstance(high, np.ndarray):
        return None
    if low.dtype.kind not in "fiu" or high.dtype.kind not in "fiu":
        return None
    return EnvTold(
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
