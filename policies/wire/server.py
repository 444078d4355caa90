"""A policy served over openpi's websocket protocol."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final, final

from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection

from policies.base import Policy
from policies.wire.codec import encode
from policies.wire.keys import KeyMap
from policies.wire.session import Session, metadata_of

__all__ = ["PolicyService"]

log = logging.getLogger(__name__)

TRY_AGAIN: Final = 1013
"""Close code of a client too many."""
_PATIENCE_S: Final = 0.5
"""How long a new client waits for one that is just leaving."""


@final
class PolicyService:
    """Serves a policy; a client has an instance to itself for as long as it is connected.

    Args:
        load: makes an instance of the policy; called once here, and again for further clients.
        keys: under which the clients' messages have what.
        clients: how many may be connected at once, each with an instance of its own.
        always: signals that go into every reply, see :class:`policies.wire.session.Session`.
    """

    def __init__(
        self,
        load: Callable[[], Policy],
        *,
        keys: KeyMap | None = None,
        clients: int = 1,
        always: Collection[str] = (),
    ) -> None:
        self._pool = _Pool(load, clients)
        self._keys = KeyMap() if keys is None else keys
        self._always = always

    def trouble(self) -> str | None:
        """Nothing: who answers at all is well."""
        return None

    def check(self, connection: ServerConnection, request: Request) -> Response | None:
        """Refuse a client too many."""
        if self._pool.wait_free(_PATIENCE_S):
            return None
        text = (
            f"busy: {self._pool.size} client(s) are connected, as many as `serve-policy "
            "--clients` allows; close one, or raise it (each has an instance of the policy)\n"
        )
        return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, text)

    def serve(self, connection: ServerConnection) -> None:
        """Speak with a client until it leaves."""
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


def _last_line(frame: bytes | str) -> str:
    return frame.strip().rpartition("\n")[2] if isinstance(frame, str) else ""
