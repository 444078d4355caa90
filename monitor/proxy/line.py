"""The two connections of one client: frames pass between them as they are."""

from __future__ import annotations

import logging
from contextlib import suppress
from time import monotonic
from typing import Final, final

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection
from websockets.sync.connection import Connection
from websockets.sync.server import ServerConnection

from policies.wire.client import RemoteError

__all__ = ["Frame", "Line"]

log = logging.getLogger(__name__)

Frame = bytes | str

_LOOK_S: Final = 0.2
"""How often a wait for one side looks whether the other has gone or says something by itself."""
_INTERNAL_ERROR: Final = 1011
_UNSPEAKABLE: Final = (1005, 1006, 1015)
"""Close codes that no frame may carry."""


@final
class Line:
    """A client and its policy server, one request in flight.

    Args:
        client: who asks.
        upstream: who answers.
        url: of the server, for the texts.
    """

    def __init__(self, client: ServerConnection, upstream: ClientConnection, url: str) -> None:
        self._client = client
        self._upstream = upstream
        self.url = url
        self.quiet_since = monotonic()
        """When the last frame went to the client, seconds of the monotonic clock."""
        self.unasked = 0
        """Frames that the server sent without a request; they pass as well."""

    def first(self) -> Frame | None:
        """Pass the server's first frame to the client; None where there is none."""
        frame = self._answer()
        if frame is not None:
            self.reply(frame)
        return frame

    def next_request(self) -> Frame | None:
        """What the client asks next; None once it, or the server, has gone."""
        with suppress(ConnectionClosed):
            while True:
                frame = _hear(self._client, _LOOK_S)
                if frame is not None:
                    return frame
                self._pass_unasked()
        return None

    def exchange(self, request: Frame) -> Frame:
        """Ask the server.

        Raises:
            RemoteError: if the server, or the client meanwhile, has gone.
        """
        try:
            self._pass_unasked()
            self._upstream.send(request)
        except ConnectionClosed as error:
            msg = f"{self.url} is gone ({error})"
            raise RemoteError(msg) from error
        answer = self._answer()
        if answer is None:
            raise RemoteError(self.who_left())
        return answer

    def reply(self, frame: Frame) -> bool:
        """Send a frame to the client; false where it has gone."""
        try:
            self._client.send(frame)
        except ConnectionClosed:
            return False
        self.quiet_since = monotonic()
        return True

    def who_left(self) -> str:
        """In words, after a connection was lost."""
        if self._client.close_code is not None:
            return f"the client left before {self.url} answered"
        code, reason = self._upstream.close_code, self._upstream.close_reason
        return f"{self.url} is gone before it answered (close code {code} {reason or ''})".rstrip()

    def close(self) -> None:
        """Close both sides, the client's with the server's code and reason where there is one."""
        code, reason = self._upstream.close_code, self._upstream.close_reason or ""
        if code is None:
            code = 1000
        elif code in _UNSPEAKABLE:
            code, reason = _INTERNAL_ERROR, "the connection to the policy server was lost"
        self._client.close(code, reason)
        self._upstream.close()

    def refuse(self, text: str) -> None:
        """Tell the client why it gets no action, as a policy server would, and close."""
        self.reply(text)
        self._client.close(_INTERNAL_ERROR, "the frame before says why")

    def _answer(self) -> Frame | None:
        """The server's next frame; None if it or the client goes before."""
        with suppress(ConnectionClosed):
            while self._client.close_code is None:
                frame = _hear(self._upstream, _LOOK_S)
                if frame is not None:
                    return frame
        return None

    def _pass_unasked(self) -> None:
        """Pass what the server says by itself.

        Raises:
            ConnectionClosed: once it has gone.
        """
        while (frame := _hear(self._upstream, 0.0)) is not None:
            self.unasked += 1
            log.warning("%s sent a frame that nobody asked for", self.url)
            self.reply(frame)


def _hear(connection: Connection, timeout_s: float) -> Frame | None:
    """The next frame of one side; None if none comes in time.

    Raises:
        ConnectionClosed: if none can come any more.
    """
    try:
        return connection.recv(timeout_s)
    except TimeoutError:
        return None
