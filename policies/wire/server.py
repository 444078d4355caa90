"""A policy served over openpi's websocket protocol."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from socket import AF_INET, AF_INET6
from typing import Final, final

from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from policies.base import Policy
from policies.wire.address import Listen
from policies.wire.codec import MAX_MESSAGE_BYTES, encode
from policies.wire.keys import KeyMap
from policies.wire.session import Session, metadata_of

__all__ = ["HEALTH_PATH", "PolicyServer", "listen_on"]

log = logging.getLogger(__name__)

HEALTH_PATH: Final = "/healthz"
TRY_AGAIN: Final = 1013
"""Close code of a client too many."""
_PATIENCE_S: Final = 0.5
"""How long a new client waits for one that is just leaving."""

Check = Callable[[ServerConnection, Request], "Response | None"]

_quiet = logging.getLogger(f"{__name__}.websockets")
_quiet.setLevel(logging.CRITICAL)  # a port scan would fill the log with tracebacks otherwise


@final
class PolicyServer:
    """Serves a policy; a client has an instance to itself for as long as it is connected.

    Args:
        load: makes an instance of the policy; called once here, and again for further clients.
        listen: where, and for whom.
        keys: under which the clients' messages have what.
        clients: how many may be connected at once, each with an instance of its own.
        always: signals that go into every reply, see :class:`policies.wire.session.Session`.
        max_message_bytes: longer frames close the connection.

    Raises:
        OSError: if the address cannot be listened on.
    """

    def __init__(
        self,
        load: Callable[[], Policy],
        listen: Listen | None = None,
        *,
        keys: KeyMap | None = None,
        clients: int = 1,
        always: Collection[str] = (),
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self._pool = _Pool(load, clients)
        self._keys = KeyMap() if keys is None else keys
        self._always = always
        where = Listen() if listen is None else listen
        self._server = listen_on(where, self._serve, self._check, max_message_bytes)
        self.host, self.port = where.host, int(self._server.socket.getsockname()[1])

    @property
    def url(self) -> str:
        """What clients connect to."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"ws://{host}:{self.port}"

    def serve_forever(self) -> None:
        """Serve until :meth:`shutdown`, called from another thread."""
        self._server.serve_forever()

    def shutdown(self) -> None:
        """Close every connection and end :meth:`serve_forever`."""
        self._server.shutdown()

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        if self._pool.wait_free(_PATIENCE_S):
            return None
        text = (
            f"busy: {self._pool.size} client(s) are connected, as many as `serve-policy "
            "--clients` allows; close one, or raise it (each has an instance of the policy)\n"
        )
        return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, text)

    def _serve(self, connection: ServerConnection) -> None:
        peer = ":".join(map(str, connection.remote_address[:2]))
        with self._pool.borrow() as policy:
            if policy is None:
                connection.close(TRY_AGAIN, "busy")
                return
            log.info("%s connected", peer)
            session = Session(policy, self._keys, self._always)
            try:
                connection.send(encode(metadata_of(policy)))
                for frame in connection:
                    answer = session.answer(frame)
                    connection.send(answer.frame)
                    if answer.close is not None:
                        log.warning("%s: %s", peer, _last_line(answer.frame))
                        connection.close(answer.close, "the frame before says why")
            except ConnectionClosed as end:
                log.info("%s is gone: %s", peer, end)
            else:
                log.info("%s left", peer)


class _Pool:
    """Instances of a policy, each with one borrower at a time; made when first needed."""

    def __init__(self, load: Callable[[], Policy], size: int) -> None:
        self._load = load
        self.size = size
        self._idle = [load()]
        self._lent = 0
        self._changed = threading.Condition()

    def wait_free(self, patience_s: float) -> bool:
        """Whether one can be borrowed now, or soon."""
        with self._changed:
            return self._changed.wait_for(lambda: self._lent < self.size, patience_s)

    @contextmanager
    def borrow(self) -> Iterator[Policy | None]:
        """Lend an instance; None where all are lent."""
        with self._changed:
            lent = self._lent < self.size
            self._lent += lent
            policy = self._idle.pop() if lent and self._idle else None
        if not lent:
            yield None
            return
        try:
            if policy is None:
                policy = self._load()
            yield policy
        finally:
            with self._changed:
                self._lent -= 1
                if policy is not None:
                    self._idle.append(policy)
                self._changed.notify_all()


def listen_on(
    where: Listen,
    serve_one: Callable[[ServerConnection], None],
    check: Check,
    max_message_bytes: int,
) -> Server:
    """A websocket server that answers ``/healthz`` and refuses who has no key, and browsers.

    Args:
        where: address and key.
        serve_one: speaks with one client until it returns, in a thread of its own.
        check: may refuse a client that has shown the key.
        max_message_bytes: longer frames close the connection with code 1009.
    """

    def admit(connection: ServerConnection, request: Request) -> Response | None:
        if request.path == HEALTH_PATH:
            return connection.respond(HTTPStatus.OK, "OK\n")
        if not where.admits(request.headers.get("Authorization")):
            text = "the API key is missing or wrong; send 'Authorization: Api-Key ...'\n"
            return connection.respond(HTTPStatus.UNAUTHORIZED, text)
        return check(connection, request)

    # A browser sends an Origin header with every websocket: a page that somebody reads on this
    # machine must not reach a server that trusts all of loopback.
    return serve(
        serve_one,
        where.host,
        where.port,
        family=AF_INET6 if ":" in where.host else AF_INET,
        origins=[None],
        process_request=admit,
        compression=None,
        max_size=max_message_bytes,
        logger=_quiet,
    )


def _last_line(frame: bytes | str) -> str:
    return frame.strip().rpartition("\n")[2] if isinstance(frame, str) else ""
