"""Connect each client to the policy server and monitor what passes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, final
from urllib.parse import urlsplit, urlunsplit

from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.http11 import Request as Handshake
from websockets.http11 import Response
from websockets.sync.client import ClientConnection
from websockets.sync.server import ServerConnection

from monitor.errors import MonitorError
from monitor.pipeline import Monitor
from monitor.proxy.client_env import ClientEnv
from monitor.proxy.connection import Frame, ProxyConnection
from monitor.proxy.request import ClientEnvInfo, Request, Split, read_request
from monitor.proxy.run import ProxyRun
from monitor.trace import TraceError
from policies.wire.address import authorization
from policies.wire.client import POLICY_VIOLATION, RemoteError, open_websocket
from policies.wire.codec import MAX_MESSAGE_BYTES, WireFormatError, decode
from policies.wire.keys import KeyMap, ours
from policies.wire.listener import HEALTH_PATH
from policies.wire.remote import translation_q99_of

__all__ = ["MakeMonitor", "ProxyService", "ServedPolicy", "Upstream"]

log = logging.getLogger(__name__)

TRY_AGAIN: Final = 1013
NO_BOUNDS: Final = (
    "the client does not declare its action space, and none is given: this connection is not "
    "monitored; give --action-low and --action-high, comma-separated numbers"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPolicy:
    """A policy as its server declares it.

    Attributes:
        name: name of the policy; "remote" if the server does not declare one.
        translation_q99_m: see :class:`policies.Policy`; None if the server does not declare it.
    """

    name: str
    translation_q99_m: tuple[float, ...] | None = None


MakeMonitor = Callable[[ClientEnvInfo, ServedPolicy], Monitor]
"""Makes a monitor for a client's environment and the served policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """The policy server behind the proxy.

    Attributes:
        url: ``ws://host:port``.
        api_key: API key of the server; None passes on the client's own.
        timeout_s: connection timeout, seconds.
        max_message_bytes: largest frame; a longer one closes the connection.
    """

    url: str
    api_key: str | None = None
    timeout_s: float = 10.0
    max_message_bytes: int = MAX_MESSAGE_BYTES

    def connect(self, path: str, header: str | None) -> ClientConnection:
        """Connect as the client did.

        Args:
            path: path of the client's request.
            header: the client's ``Authorization`` header.
        """
        if self.api_key is not None:
            header = authorization(self.api_key)
        parts = urlsplit(self.url)
        if path not in ("", "/"):
            wanted = urlsplit(path)
            parts = parts._replace(path=wanted.path, query=wanted.query)
        headers = {} if header is None else {"Authorization": header}
        return open_websocket(urlunsplit(parts), headers, self.timeout_s, self.max_message_bytes)

    def trouble(self) -> str | None:
        """Return why ``/healthz`` of the server does not answer OK; None if it does."""
        parts = urlsplit(self.url)
        kind = HTTPSConnection if parts.scheme == "wss" else HTTPConnection
        http = kind(parts.hostname or "", parts.port, timeout=self.timeout_s)
        try:
            http.request("GET", HEALTH_PATH)
            status = http.getresponse().status
        except (OSError, HTTPException) as error:
            return f"{self.url}: {error}"
        finally:
            http.close()
        return None if status == 200 else f"{self.url}: status {status}"


@final
class ProxyService:
    """Passes every frame between clients and a policy server, and monitors each episode.

    Args:
        upstream: the policy server.
        run: run that the episodes belong to.
        make_monitor: makes the monitor of an episode.
        declared: action space and control period given by the user; None leaves them to the
            client.
        keys: key map of the messages.
        split: rules for where an episode begins.
        acts: whether to send the monitor's actions, and none after a halt; otherwise frames pass
            unmodified.
    """

    def __init__(
        self,
        upstream: Upstream,
        run: ProxyRun,
        make_monitor: MakeMonitor,
        *,
        declared: ClientEnvInfo | None = None,
        keys: KeyMap | None = None,
        split: Split | None = None,
        acts: bool = False,
    ) -> None:
        self._upstream = upstream
        self._run = run
        self._make_monitor = make_monitor
        self._declared = declared
        self._keys = KeyMap() if keys is None else keys
        self._split = Split() if split is None else split
        self._acts = acts

    def trouble(self) -> str | None:
        """Return why the server is not healthy; the proxy is as healthy as its server."""
        return self._upstream.trouble()

    def check(self, connection: ServerConnection, handshake: Handshake) -> Response | None:
        """Accept every client: the server may refuse it."""
        return None

    def serve(self, connection: ServerConnection) -> None:
        """Pass frames until one side leaves."""
        handshake = connection.request
        path = "/" if handshake is None else handshake.path
        header = None if handshake is None else handshake.headers.get("Authorization")
        try:
            upstream = self._upstream.connect(path, header)
        except (OSError, WebSocketException) as error:
            log.warning("no connection to %s: %s", self._upstream.url, error)
            code = POLICY_VIOLATION if _refuses(error) else TRY_AGAIN
            connection.close(code, f"{self._upstream.url}: {error}"[:120])
            return
        link = ProxyConnection(connection, upstream, self._upstream.url)
        try:
            self._serve(link)
        except RemoteError as error:
            log.warning("%s", error)
        finally:
            link.close()

    def _serve(self, link: ProxyConnection) -> None:
        first = link.first()
        if first is None:
            return
        served, info, instruction = _served(first), self._declared, None
        request = self._next(link)
        while request is not None:
            if request.resets:
                info = self._declared or request.env or info
                instruction = request.instruction
                link.reply(link.exchange(request.frame))
                request = self._next(link)
            else:
                request = self._episode(link, request, info, served, instruction)

    def _episode(
        self,
        link: ProxyConnection,
        first: Request,
        info: ClientEnvInfo | None,
        served: ServedPolicy,
        instruction: str | None,
    ) -> Request | None:
        """Monitor an episode; return the request that begins the next one."""
        if first.instruction is None:
            first = replace(first, instruction=instruction)
        if info is None:
            log.error("%s", NO_BOUNDS)
            return self._unwatched(link, first, first)
        try:
            monitor = self._make_monitor(info, served)
        except (MonitorError, OSError) as error:
            log.error("this episode is not monitored: %s", error)  # noqa: TRY400
            return self._unwatched(link, first, first)
        env = ClientEnv(
            link,
            first,
            info,
            keys=self._keys,
            split=self._split,
            acts=self._acts,
            gripper_index=monitor.config.robot.gripper.index,
        )
        try:
            reason = self._run.watch(env, monitor, served.name).message
        except TraceError as error:
            log.error("this episode is not monitored: %s", error)  # noqa: TRY400
            reason = str(error)
        except Exception as error:  # a full disk must not stop a working robot
            log.exception("the monitoring of this episode failed")
            reason = f"{type(error).__name__}: {error}"
        if env.over:
            return env.next
        if not env.forwarded:
            return self._unwatched(link, env.request, env.request)
        if not env.answered:
            if self._acts:
                link.refuse(f"halted by vlawatch: {reason}")
            return None
        log.warning("the rest of this episode passes unmonitored: %s", reason)
        return self._unwatched(link, self._next(link), env.request)

    def _unwatched(
        self, link: ProxyConnection, request: Request | None, episode: Request
    ) -> Request | None:
        """Pass the rest of an episode; return the request that begins the next one."""
        while request is not None:
            ends = self._split.before(request, episode.instruction, link.quiet_since)
            if ends and request is not episode:
                return request
            if self._acts:
                link.refuse(
                    "vlawatch cannot monitor this episode, so it sends no action; see its log"
                )
                return None
            link.reply(link.exchange(request.frame))
            request = self._next(link)
        return None

    def _next(self, link: ProxyConnection) -> Request | None:
        frame = link.next_request()
        return None if frame is None else read_request(frame, self._keys)


def _served(first: Frame) -> ServedPolicy:
    """Read the policy that a vlawatch server declares in its first frame."""
    try:
        declared = decode(first)
    except WireFormatError as error:
        log.warning("the server's first frame cannot be read: %s", error)
        declared = {}
    name = declared.get(ours("policy"))
    return ServedPolicy(
        name=name if isinstance(name, str) else "remote",
        translation_q99_m=translation_q99_of(declared),
    )


def _refuses(error: Exception) -> bool:
    return isinstance(error, InvalidStatus) and error.response.status_code in (401, 403)
