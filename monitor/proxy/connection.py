"""The pair of connections behind one client: frames pass through unmodified."""

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

__all__ = ["Frame", "ProxyConnection"]

log = logging.getLogger(__name__)

Frame = bytes | str

_POLL_S: Final = 0.2
"""How often a wait for one side checks whether the other has gone or has sent a frame."""
_INTERNAL_ERROR: Final = 1011
_RESERVED_CODES: Final = (1005, 1006, 1015)
"""Close codes that a close frame must not carry."""


@final
class ProxyConnection:
    """A client and its policy server, with one request in flight.

    Args:
        client: connection to the client.
        upstream: connection to the policy server.
        url: URL of the server, for messages.
    """

    def __init__(self, client: ServerConnection, upstream: ClientConnection, url: str) -> None:
        self._client = client
        self._upstream = upstream
        self.url = url
        self.quiet_since = monotonic()
        """Time of the last frame to the client, seconds of the monotonic clock."""
        self.unrequested = 0
        """Number of frames that the server sent without a request; they pass through as well."""

    def first(self) -> Frame | None:
        """Pass the server's first frame to the client and return it; None if there is none."""
        frame = self._receive_answer()
        if frame is not None:
            self.reply(frame)
        return frame

    def next_request(self) -> Frame | None:
        """Return the client's next request; None once the client or the server has gone."""
        with suppress(ConnectionClosed):
            while True:
                frame = _receive(self._client, _POLL_S)
                if frame is not None:
                    return frame
                self._pass_unrequested()
        return None

    def exchange(self, request: Frame) -> Frame:
        """Send a request to the server and return its answer.

        Raises:
            RemoteError: if the server has gone, or the client while it waited.
        """
        try:
            self._pass_unrequested()
            self._upstream.send(request)
        except ConnectionClosed as error:
            msg = f"{self.url} is gone ({error})"
            raise RemoteError(msg) from error
        answer = self._receive_answer()
        if answer is None:
            raise RemoteError(self.who_left())
        return answer

    def reply(self, frame: Frame) -> bool:
        """Send a frame to the client; return False if it has gone."""
        try:
            self._client.send(frame)
        except ConnectionClosed:
            return False
        self.quiet_since = monotonic()
        return True

    def who_left(self) -> str:
        """Describe which side closed, after a connection was lost."""
        if self._client.close_code is not None:
            return f"the client left before {self.url} answered"
        code, reason = self._upstream.close_code, self._upstream.close_reason
        return f"{self.url} closed before it answered (close code {code} {reason or ''})".rstrip()

    def close(self) -> None:
        """Close both sides, the client's with the server's code and reason if there is one."""
        code, reason = self._upstream.close_code, self._upstream.close_reason or ""
        if code is None:
            code = 1000
        elif code in _RESERVED_CODES:
            code, reason = _INTERNAL_ERROR, "the connection to the policy server was lost"
        self._client.close(code, reason)
        self._upstream.close()

    def refuse(self, text: str) -> None:
        """Send the client the reason for withholding an action, and close."""
        self.reply(text)
        self._client.close(_INTERNAL_ERROR, "see the previous frame for the reason")

    def _receive_answer(self) -> Frame | None:
        """Return the server's next frame; None if it or the client leaves first."""
        with suppress(ConnectionClosed):
            while self._client.close_code is None:
                frame = _receive(self._upstream, _POLL_S)
                if frame is not None:
                    return frame
        return None

    def _pass_unrequested(self) -> None:
        """Pass on frames that the server sent without a request.

        Raises:
            ConnectionClosed: if the server has gone.
        """
        while (frame := _receive(self._upstream, 0.0)) is not None:
            self.unrequested += 1
            log.warning("%s sent a frame without a request", self.url)
            self.reply(frame)


def _receive(connection: Connection, timeout_s: float) -> Frame | None:
    """Return the next frame of one side; None after the timeout.

    Raises:
        ConnectionClosed: if the connection is closed.
    """
    try:
        return connection.recv(timeout_s)
    except TimeoutError:
        return None
