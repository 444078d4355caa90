"""One client of a policy server: its frames in, our frames out; knows nothing of sockets."""

from __future__ import annotations

import traceback
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from time import perf_counter
from types import SimpleNamespace
from typing import Any, Final, final

import numpy as np

from envs.robot import ROBOTS
from policies.base import Policy
from policies.wire.codec import WireFormatError, decode, encode
from policies.wire.keys import PROTOCOL, KeyMap, ours
from policies.wire.messages import observation_of, reply_of

__all__ = ["Answer", "Session", "metadata_of"]

BAD_DATA: Final = 1007
"""Close code of a frame that cannot be read."""
INTERNAL_ERROR: Final = 1011
"""Close code after an error of the policy, as openpi's server closes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What goes back.

    Attributes:
        frame: bytes are a message, a text is an error, as in openpi.
        close: code to close the connection with afterwards; None keeps it.
    """

    frame: bytes | str
    close: int | None = None


def metadata_of(policy: Policy) -> dict[str, Any]:
    """First frame of the server: who serves, for clients that ask."""
    message: dict[str, Any] = {
        ours("protocol"): PROTOCOL,
        ours("policy"): policy.name,
        ours("signals"): sorted(policy.signals),
        ours("needs_image"): bool(getattr(policy, "needs_image", True)),
    }
    known = getattr(policy, "statistics", None)
    if getattr(known, "q01", None) is not None and getattr(known, "q99", None) is not None:
        names = ("q01", "q99", "mask")
        found = {name: getattr(known, name, None) for name in names}
        message[ours("statistics")] = {
            name: np.asarray(value) for name, value in found.items() if value is not None
        }
    if (translation := getattr(policy, "translation_q99_m", None)) is not None:
        message[ours("translation_q99_m")] = np.asarray(translation, dtype=np.float64)
    return message


@final
class Session:
    """Answers one client with a policy instance of its own.

    A client of ours resets with a message; for any other a changed instruction begins an episode.

    Args:
        policy: asked.
        keys: under which the client's messages have what.
        always: signals to put into every reply, also for clients that do not ask for them.
    """

    def __init__(self, policy: Policy, keys: KeyMap, always: Collection[str] = ()) -> None:
        self._policy = policy
        self._keys = keys
        self._always = frozenset(always)
        self._instruction: str | None = None
        self._resets_itself = False
        self._total_ms: float | None = None

    def answer(self, frame: bytes | str) -> Answer:
        """Answer a frame; never raises."""
        began = perf_counter()
        try:
            message = decode(frame)
            seq = _sequence(message)
        except WireFormatError as error:
            return Answer(frame=f"refused: {error}", close=BAD_DATA)
        try:
            reply = self._reset(message) if ours("reset") in message else self._act(message)
            if seq is not None:
                reply[ours("seq")] = seq
            packed = encode(reply)
        except Exception as error:
            text = traceback.format_exc()
            if seq is None:
                return Answer(frame=text, close=INTERNAL_ERROR)
            failed = {
                ours("seq"): seq,
                ours("error"): str(error),
                ours("kind"): type(error).__name__,
                ours("traceback"): text,
            }
            return Answer(frame=encode(failed))
        self._total_ms = (perf_counter() - began) * 1e3
        return Answer(frame=packed)

    def _reset(self, message: Mapping[Any, Any]) -> dict[str, Any]:
        given = message[ours("reset")]
        if not isinstance(given, Mapping) or not isinstance(given.get("instruction"), str):
            msg = f"{ours('reset')!r} is {str(given)[:60]!r}, expected a map with an instruction"
            raise WireFormatError(msg)
        self._resets_itself = True
        bind = getattr(self._policy, "bind", None)
        if callable(bind) and given.get("env") is not None:
            bind(_stand_in(given["env"]))
        self._policy.reset(given["instruction"])
        return {ours("reset"): True}

    def _act(self, message: Mapping[Any, Any]) -> dict[str, Any]:
        observation = observation_of(message, self._keys)
        if not self._resets_itself and observation.instruction != self._instruction:
            self._policy.reset(observation.instruction)
            self._instruction = observation.instruction
        began = perf_counter()
        output = self._policy.act(observation)
        timing = {"infer_ms": (perf_counter() - began) * 1e3}
        if self._total_ms is not None:
            timing["prev_total_ms"] = self._total_ms
        wanted = message.get(ours("want"))
        asked = self._always.union(wanted if isinstance(wanted, list) else ())
        return {**reply_of(output, self._keys, asked), "server_timing": timing}


class _StandIn(SimpleNamespace):
    """The part of an environment that travels; what does not travel says so."""

    def __getattr__(self, name: str) -> Any:
        msg = (
            f"the policy asks for the environment's {name!r}, which does not travel: this policy "
            "must run in the environment's own process"
        )
        raise AttributeError(msg)


def _stand_in(given: Any) -> _StandIn:
    """What ``bind`` gets instead of the environment.

    Raises:
        WireFormatError: if the client's description has no action space.
    """
    low, high = (given.get(name) if isinstance(given, Mapping) else None for name in _ENDS)
    if not isinstance(low, np.ndarray) or not isinstance(high, np.ndarray):
        msg = f"the environment is {str(given)[:60]!r}, expected a map with action_low, action_high"
        raise WireFormatError(msg)
    env = _StandIn(
        action_space=SimpleNamespace(low=low, high=high, shape=low.shape, dtype=low.dtype),
        control_dt_s=given.get("control_dt_s"),
    )
    if given.get("robot") in ROBOTS:
        env.robot = ROBOTS[given["robot"]]
    env.unwrapped = env
    return env


_ENDS: Final = ("action_low", "action_high")


def _sequence(message: Mapping[Any, Any]) -> int | None:
    seq = message.get(ours("seq"))
    if seq is not None and type(seq) is not int:
        msg = f"{ours('seq')!r} is {type(seq).__name__}, expected an integer"
        raise WireFormatError(msg)
    return seq
