"""The policy ``remote``: any policy in another process, or on another machine."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Collection, Mapping
from typing import Any, final

import numpy as np

from monitor.errors import ConfigError, unknown_name
from policies.base import Observation, PolicyOutput
from policies.wire.address import check_url, read_key
from policies.wire.client import RemoteError, ServerGoneError, Wire
from policies.wire.codec import MAX_MESSAGE_BYTES
from policies.wire.keys import PROTOCOL, KeyMap, ours
from policies.wire.messages import SIGNALS, output_of, request_of

__all__ = ["RemotePolicy"]

log = logging.getLogger(__name__)


@final
class RemotePolicy:
    """Asks a policy server at every step: ours (``vlawatch serve-policy``) or any of openpi's.

    An error ends the use of the connection for the episode, since the policy's state of the
    episode may be gone with it; the next :meth:`reset` connects again.

    Args:
        url: ``ws://host:port``, or ``wss://``.
        api_key_env: environment variable with the server's key; None reads VLAWATCH_API_KEY,
            where it is set.
        timeout_s: deadline of a call; a server is stuck after this.
        first_timeout_s: deadline of the first call over a connection, in which a server may still
            compile its model.
        patience_s: how long a connection is tried for, at the start and at each reset.
        signals: fields of :class:`PolicyOutput` that a server of ours shall send; None asks for
            all that it has.
        keys: changes of :class:`policies.wire.keys.KeyMap`, for a server that is not ours.
        max_message_bytes: longer replies are an error.

    Raises:
        ConfigError: if an argument is wrong.
        RemoteError: if there is no server.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key_env: str | None = None,
        timeout_s: float = 30.0,
        first_timeout_s: float = 120.0,
        patience_s: float = 10.0,
        signals: Collection[str] | None = None,
        keys: Mapping[str, str] | None = None,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        for name in signals or ():
            if name not in SIGNALS:
                raise ConfigError(unknown_name("signal", name, SIGNALS))
        if not timeout_s > 0 or not first_timeout_s > 0:
            msg = f"timeout_s {timeout_s} and first_timeout_s {first_timeout_s} must be above 0"
            raise ConfigError(msg)
        self._keys = KeyMap.of(keys)
        self._timeouts = (first_timeout_s, timeout_s)
        self._wanted = [*(SIGNALS if signals is None else signals), "action", "decode_ok"]
        self._wire = Wire(
            check_url(url),
            api_key=read_key(api_key_env),
            patience_s=patience_s,
            max_message_bytes=max_message_bytes,
        )
        self._env: dict[str, Any] | None = None
        self._instruction = ""
        self.name = "remote"
        self.served: str | None = None
        """Name of the policy behind the server; None where the server does not tell."""
        self.needs_image = True
        self.statistics: Any = None
        self.translation_q99_m: tuple[float, ...] | None = None
        self.signals: frozenset[str] = frozenset()
        self._connect()
        weakref.finalize(self, self._wire.close)  # so that the server hears of our leaving

    def bind(self, env: Any) -> None:
        """Keep what a policy elsewhere may know of the environment: bounds, period, robot."""
        inner = getattr(env, "unwrapped", env)
        space = env.action_space
        given = {
            "action_low": np.asarray(space.low),
            "action_high": np.asarray(space.high),
            "control_dt_s": getattr(inner, "control_dt_s", None),
            "robot": getattr(getattr(inner, "robot", None), "name", None),
        }
        self._env = {name: value for name, value in given.items() if value is not None}

    def reset(self, instruction: str) -> None:
        """Begin an episode; connects again if an error cost the connection.

        Raises:
            RemoteError: if there is no server, or its policy raised.
        """
        if not self._wire.alive():
            self._connect()
        self._instruction = instruction
        if not self._extended:
            return
        begin = {ours("reset"): {"instruction": instruction, "env": self._env}}
        try:
            self._ask(begin)
        except ServerGoneError:  # between two episodes, unnoticed: nothing of this one is lost
            self._connect()
            self._ask(begin)

    def act(self, observation: Observation) -> PolicyOutput:
        """Ask the server.

        Raises:
            RemoteError: if it does not answer in time, or with an error.
            WireFormatError: if its reply is not an action.
        """
        message = request_of(observation, self._keys, extended=self._extended)
        message[self._keys.instruction] = observation.instruction or self._instruction
        if self._extended:
            message[ours("want")] = self._wanted
        return output_of(self._ask(message), self._keys)

    def close(self) -> None:
        """Take leave of the server."""
        self._wire.close()

    def _ask(self, message: Mapping[str, Any]) -> dict[Any, Any]:
        first, later = self._timeouts
        return self._wire.ask(message, later if self._wire.asked else first)

    def _connect(self) -> None:
        """Connect and learn who serves.

        Raises:
            RemoteError: if none does, or it is not the one that served before.
        """
        declared = self._wire.connect()
        try:
            self._extended = _is_ours(declared)
            served = declared.get(ours("policy"))
            if self.served not in (None, served):
                msg = (
                    f"it now serves {served!r}, this run began with {self.served!r}: serve that "
                    "one again, or begin a new run"
                )
                raise RemoteError(msg)  # noqa: TRY301
        except RemoteError as error:
            self._wire.close()
            msg = f"{self._wire.url}: {error}"
            raise RemoteError(msg) from None
        self.served = served if isinstance(served, str) else None
        signals = declared.get(ours("signals"))
        known = signals if isinstance(signals, list) else []
        self.signals = frozenset(name for name in self._wanted if name in known)
        self.needs_image = declared.get(ours("needs_image")) is not False
        statistics = declared.get(ours("statistics"))
        self.statistics = _Statistics(statistics) if isinstance(statistics, Mapping) else None
        self.translation_q99_m = translation_q99_of(declared)
        log.info("connected to %s, policy %s", self._wire.url, self.served or "unknown")


class _Statistics:
    """Un-normalisation of the policy behind the server, for the check before step 0."""

    def __init__(self, declared: Mapping[Any, Any]) -> None:
        self.q01, self.q99 = declared.get("q01"), declared.get("q99")
        if (mask := declared.get("mask")) is not None:
            self.mask = mask


def translation_q99_of(declared: Mapping[Any, Any]) -> tuple[float, ...] | None:
    """Return the 99% quantiles of the translation that a server declares, metres, or None."""
    given = declared.get(ours("translation_q99_m"))
    if not isinstance(given, np.ndarray) or given.shape != (3,) or given.dtype.kind != "f":
        return None
    values: tuple[float, ...] = tuple(given.astype(np.float64).tolist())
    return values if all(0.0 < one < float("inf") for one in values) else None


def _is_ours(declared: Mapping[Any, Any]) -> bool:
    """Return whether a server has our keys in addition to openpi's.

    Raises:
        RemoteError: if they are of another version.
    """
    version = declared.get(ours("protocol"))
    if version in (None, PROTOCOL):
        return version is not None
    msg = (
        f"it speaks version {version!r} of our keys, this is {PROTOCOL}; install the same vlawatch"
    )
    raise RemoteError(msg)
