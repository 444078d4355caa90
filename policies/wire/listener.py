"""A websocket server for one service: who may come in, whether it is well, how it ends."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from time import monotonic, sleep
from typing import Final, Protocol, final

from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from policies.wire.address import Listen
from policies.wire.codec import MAX_MESSAGE_BYTES

__all__ = ["HEALTH_PATH", "Listener", "Service"]

HEALTH_PATH: Final = "/healthz"
GOING_AWAY: Final = 1001
"""Close code of a server that ends."""

INTERNAL_ERROR: Final = 1011
_PARTING_S: Final = 5.0
"""How long to wait for clients that are asked to leave, seconds."""

log = logging.getLogger(__name__)
_quiet = logging.getLogger(f"{__name__}.websockets")
_quiet.setLevel(logging.CRITICAL)  # a port scan would fill the log with tracebacks otherwise


class Service(Protocol):
    """What a listener offers to its clients, each of them in a thread of its own."""

    def trouble(self) -> str | None:
        """What is wrong, for ``/healthz``; None if nothing is."""

    def check(self, connection: ServerConnection, request: Request) -> Response | None:
        """Refuse a client that has shown the key; None takes it."""

    def serve(self, connection: ServerConnection) -> None:
        """Speak with a client until it leaves."""


@final
class Listener:
    """Listens as soon as it is made; answers ``/healthz``; refuses who has no key, and browsers.

    Args:
        service: what is offered.
        where: address and key; by default port 8000 of loopback.
        max_message_bytes: longer frames close the connection with code 1009.

    Raises:
        ConfigError: if the address cannot be listened on.
    """

    def __init__(
        self,
        service: Service,
        where: Listen | None = None,
        *,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self._service = service
        self._where = Listen() if where is None else where
        host = self._where.host
        # A browser sends an Origin header with every websocket: a page that somebody reads on this
        # machine must not reach a server that trusts all of loopback.
        self._open: set[ServerConnection] = set()
        self._where.require_free()
        self._server = serve(
            self._serve_one,
            host,
            self._where.port,
            family=self._where.family,
            origins=[None],
            process_request=self._admit,
            compression=None,
            max_size=max_message_bytes,
            logger=_quiet,
        )
        self.port: Final = int(self._server.socket.getsockname()[1])
        self.url: Final = (
            f"ws://[{host}]:{self.port}" if ":" in host else f"ws://{host}:{self.port}"
        )

    def serve_forever(self) -> None:
        """Serve until :meth:`shutdown`, called from another thread, or Ctrl-C."""
        self._server.serve_forever()

    @contextmanager
    def background(self) -> Iterator[str]:
        """Serve in a thread while the context lasts; gives the URL.

        >>> class Nothing:
        ...     def trouble(self): return None
        ...     def check(self, connection, request): return None
        ...     def serve(self, connection): connection.close()
        >>> with Listener(Nothing(), Listen(port=0)).background() as url:
        ...     url.startswith("ws://127.0.0.1:")
        True
        """
        thread = threading.Thread(target=self.serve_forever, daemon=True)
        thread.start()
        try:
            yield self.url
        finally:
            self.shutdown()
            thread.join()

    def shutdown(self) -> None:
        """Close every connection and end :meth:`serve_forever`."""
        self._server.shutdown()
        for connection in tuple(self._open):  # websockets before 17 leaves them open
            connection.close(GOING_AWAY)
        end = monotonic() + _PARTING_S
        while self._open and monotonic() < end:
            sleep(0.02)

    def _serve_one(self, connection: ServerConnection) -> None:
        self._open.add(connection)
        try:
            self._service.serve(connection)
        except Exception:
            log.exception("a client's connection broke down; the others go on")
            connection.close(INTERNAL_ERROR, "internal error; the server's log has it")
        finally:
            self._open.discard(connection)

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path == HEALTH_PATH:
            trouble = self._service.trouble()
            if trouble is None:
                return connection.respond(HTTPStatus.OK, "OK\n")
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, f"{trouble}\n")
        if not self._where.admits(request.headers.get("Authorization")):
            text = "the API key is missing or wrong; send 'Authorization: Api-Key ...'\n"
            return connection.respond(HTTPStatus.UNAUTHORIZED, text)
        return self._service.check(connection, request)
