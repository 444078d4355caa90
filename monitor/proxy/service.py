"""What the proxy does for each client: connect it through, and watch."""

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
from monitor.proxy.line import Frame, Line
from monitor.proxy.request import EnvTold, Request, Split, read_request
from monitor.proxy.run import ProxyRun
from monitor.proxy.world import ClientWorld
from monitor.trace import TraceError
from policies.wire.address import authorization
from policies.wire.client import POLICY_VIOLATION, RemoteError, open_websocket
from policies.wire.codec import MAX_MESSAGE_BYTES, WireFormatError, decode
from policies.wire.keys import KeyMap, ours
from policies.wire.listener import HEALTH_PATH
from policies.wire.remote import usual_of

__all__ = ["MakeMonitor", "ProxyService", "Served", "Upstream"]

log = logging.getLogger(__name__)

TRY_AGAIN: Final = 1013
NO_BOUNDS: Final = (
    "the client does not tell its action space, and none is given: nothing of this connection is "
    "monitored; give --action-low and --action-high, comma-separated numbers"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What the server says of its policy.

    Attributes:
        name: "remote" where it does not say.
        usual_translation: as of :class:`policies.Policy`; None where it does not say.
    """

    name: str
    usual_translation: tuple[float, ...] | None = None


MakeMonitor = Callable[[EnvTold, Served], Monitor]
"""Makes a monitor for a client's environment and the served policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """The policy server behind the proxy.

    Attributes:
        url: ``ws://host:port``.
        api_key: of the server; None passes on what the client sends.
        timeout_s: for connecting.
        max_message_bytes: longer frames close the connection.
    """

    url: str
    api_key: str | None = None
    timeout_s: float = 10.0
    max_message_bytes: int = MAX_MESSAGE_BYTES

    def connect(self, path: str, header: str | None) -> ClientConnection:
        """Connect as the client did.

        Args:
            path: that the client asked for.
            header: ``Authorization`` of the client.
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
        """Why its ``/healthz`` does not say OK; None if it does."""
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
        upstream: the server.
        run: where episodes go.
        make_monitor: for each episode.
        told: action space and period where the user gives them; else the client must.
        keys: of the messages.
        split: where an episode begins.
        acts: send the monitor's actions, and none after a halt; else frames pass unmodified.
    """

    def __init__(
        self,
        upstream: Upstream,
        run: ProxyRun,
        make_monitor: MakeMonitor,
        *,
        told: EnvTold | None = None,
        keys: KeyMap | None = None,
        split: Split | None = None,
        acts: bool = False,
    ) -> None:
        self._upstream = upstream
        self._run = run
        self._make_monitor = make_monitor
        self._told = told
        self._keys = KeyMap() if keys is None else keys
        self._split = Split() if split is None else split
        self._acts = acts

    def trouble(self) -> str | None:
        """Whatever troubles the server troubles the proxy."""
        return self._upstream.trouble()

    def check(self, connection: ServerConnection, handshake: Handshake) -> Response | None:
        """Take everybody: the server may refuse."""
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
        line = Line(connection, upstream, self._upstream.url)
        try:
            self._serve(line)
        except RemoteError as error:
            log.warning("%s", error)
        finally:
            line.close()

    def _serve(self, line: Line) -> None:
        first = line.first()
        if first is None:
            return
        served, told, instruction = _served(first), self._told, None
        request = self._next(line)
        while request is not None:
            if request.resets:
                told = self._told or request.env or told
                instruction = request.instruction
                line.reply(line.exchange(request.frame))
                request = self._next(line)
            else:
                request = self._episode(line, request, told, served, instruction)

    def _episode(
        self,
        line: Line,
        first: Request,
        told: EnvTold | None,
        served: Served,
        instruction: str | None,
    ) -> Request | None:
        """Watch an episode; the request that begins the next one."""
        if first.instruction is None:
            first = replace(first, instruction=instruction)
        if told is None:
            log.error("%s", NO_BOUNDS)
            return self._unwatched(line, first, first)
        try:
            monitor = self._make_monitor(told, served)
        except (MonitorError, OSError) as error:
            log.error("this episode is not monitored: %s", error)  # noqa: TRY400
            return self._unwatched(line, first, first)
        world = ClientWorld(
            line,
            first,
            told,
            keys=self._keys,
            split=self._split,
            acts=self._acts,
            gripper_index=monitor.config.robot.gripper.index,
        )
        try:
            reason = self._run.watch(world, monitor, served.name).message
        except TraceError as error:
            log.error("this episode is not monitored: %s", error)  # noqa: TRY400
            reason = str(error)
        except Exception as error:  # a full disk must not stop a robot that works
            log.exception("the monitoring of this episode broke down")
            reason = f"{type(error).__name__}: {error}"
        if world.over:
            return world.next
        if not world.asked:
            return self._unwatched(line, world.request, world.request)
        if not world.answered:
            if self._acts:
                line.refuse(f"halted by vlawatch: {reason}")
            return None
        log.warning("the rest of this episode passes without being monitored: %s", reason)
        return self._unwatched(line, self._next(line), world.request)

    def _unwatched(self, line: Line, request: Request | None, episode: Request) -> Request | None:
        """Pass the rest of an episode; the request that begins the next one."""
        while request is not None:
            ends = self._split.before(request, episode.instruction, line.quiet_since)
            if ends and request is not episode:
                return request
            if self._acts:
                line.refuse("vlawatch cannot monitor this, so no action is sent; its log says why")
                return None
            line.reply(line.exchange(request.frame))
            request = self._next(line)
        return None

    def _next(self, line: Line) -> Request | None:
        frame = line.next_request()
        return None if frame is None else read_request(frame, self._keys)


def _served(first: Frame) -> Served:
    """What the server's first frame says of its policy, where the server is ours."""
    try:
        told = decode(first)
    except WireFormatError as error:
        log.warning("the server's first frame cannot be read: %s", error)
        told = {}
    name = told.get(ours("policy"))
    return Served(
        name=name if isinstance(name, str) else "remote", usual_translation=usual_of(told)
    )


def _refuses(error: Exception) -> bool:
    return isinstance(error, InvalidStatus) and error.response.status_code in (401, 403)
