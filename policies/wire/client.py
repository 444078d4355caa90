"""A connection to a policy server: one request in flight, a deadline on every call."""

from __future__ import annotations

import logging
import socket
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, Final, final
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from monitor.errors import MonitorError
from policies.wire.address import API_KEY_ENV, authorization, is_loopback
from policies.wire.codec import MAX_MESSAGE_BYTES, WireFormatError, decode, encode
from policies.wire.keys import ours

__all__ = ["RemoteError", "ServerGoneError", "Wire", "open_websocket", "raised_there", "read_reply"]

log = logging.getLogger(__name__)

POLICY_VIOLATION: Final = 1008
"""Close code where a key is missing or wrong behind a proxy."""
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0
_GONE: Final = "the next episode connects again"


class RemoteError(MonitorError, RuntimeError):
    """A policy server cannot be reached, does not answer in time, or answers with an error."""


class ServerGoneError(RemoteError):
    """The connection ended before the reply came."""


@final
class Wire:
    """Speaks with one policy server. Not thread-safe.

    A reply can only ever be taken for the request it answers: after a deadline, an error or a
    Ctrl-C the connection is dropped, so that a late reply is dropped; a reply that waits
    before anything was asked drops it too; and a server of ours repeats the request's number.

    Args:
        url: ``ws://host:port``.
        api_key: sent to the server, if it is not None.
        patience_s: how long :meth:`connect` tries, with growing pauses.
        max_message_bytes: longer replies close the connection.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        patience_s: float = 10.0,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self.url = url
        self.asked = 0
        """Requests sent over the present connection."""
        self._headers = {} if api_key is None else {"Authorization": authorization(api_key)}
        self._patience_s = patience_s
        self._max_message_bytes = max_message_bytes
        self._connection: ClientConnection | None = None
        self._lost = "not connected yet"

    def alive(self) -> bool:
        """Whether a request can be sent, as far as is known without sending one."""
        if self._connection is not None:
            try:
                self._nothing_waits(self._connection)
            except (ConnectionClosed, RemoteError) as error:
                self.drop(str(error))
        return self._connection is not None

    def connect(self) -> dict[Any, Any]:
        """Connect, and read the server's first frame.

        Raises:
            RemoteError: if no server takes us in time; the text says what to do.
        """
        self.drop()
        end, pause, why, busy = monotonic() + self._patience_s, _FIRST_PAUSE_S, "", ""
        while True:
            left = max(end - monotonic(), 0.1)
            try:
                return self._open(left)
            except _BusyError as error:
                why = busy = str(error)
            except OSError as error:  # after "busy" a time-out only says that we gave up
                why = busy or str(error) or type(error).__name__
            if monotonic() + pause > end:
                break
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        msg = (
            f"no policy server at {self.url} within {self._patience_s:g} s ({why}); start one with "
            "`vlawatch serve-policy --policy NAME`, or give the --url of one that runs"
        )
        raise RemoteError(msg)

    def ask(self, message: Mapping[str, Any], timeout_s: float) -> dict[Any, Any]:
        """Send a request and wait for its reply.

        Args:
            message: the request; our number is added.
            timeout_s: the reply is useless after this.

        Raises:
            RemoteError: whatever went wrong, the connection is then dropped; or the policy itself
                raised on a server of ours, which leaves it as it is.
            WireFormatError: if the message cannot be written.
        """
        if self._connection is None:
            msg = f"{self.url}: {self._lost}; {_GONE}"
            raise RemoteError(msg)
        self.asked += 1
        frame = encode({**message, ours("seq"): self.asked})
        try:
            reply = self._exchange(self._connection, frame, timeout_s)
        except BaseException as error:  # after a Ctrl-C too a reply is still to come
            self.drop(str(error) or type(error).__name__)
            raise
        if ours("error") in reply:
            raise RemoteError(raised_there(reply, self.url))
        return reply

    def drop(self, why: str = "the connection was closed") -> None:
        """Close at once, without a word; the server notices."""
        connection, self._connection = self._connection, None
        self._lost = f"the connection was lost before ({why.partition(chr(10))[0][:200]})"
        if connection is not None:
            connection.close_socket()

    def close(self) -> None:
        """Take leave and close."""
        if self._connection is not None:
            self._connection.close()
        self.drop()

    def _open(self, timeout_s: float) -> dict[Any, Any]:
        try:
            connection = open_websocket(self.url, self._headers, timeout_s, self._max_message_bytes)
        except InvalidStatus as error:
            raise self._refused(error) from error
        except WebSocketException as error:
            msg = f"{self.url} is not a policy server: {error}"
            raise RemoteError(msg) from error
        try:
            metadata = decode(connection.recv(timeout_s))
        except ConnectionClosed as error:
            connection.close_socket()
            if connection.close_code == POLICY_VIOLATION:
                msg = f"{self.url} refuses us ({connection.close_reason})"
                raise RemoteError(msg) from error
            raise _BusyError(str(error)) from error
        except WireFormatError as error:
            connection.close_socket()
            msg = f"{self.url} does not speak openpi's protocol: its first frame: {error}"
            raise RemoteError(msg) from error
        except BaseException:
            connection.close_socket()
            raise
        self._connection, self.asked = connection, 0
        return metadata

    def _refused(self, error: InvalidStatus) -> Exception:
        status, body = error.response.status_code, error.response.body or b""
        text = bytes(body[:500]).decode(errors="replace").strip()
        if status in (401, 403):
            msg = f"{self.url} refuses us ({text or status}); put its key into {API_KEY_ENV}"
            return RemoteError(msg)
        if status in (502, 503, 504):
            return _BusyError(f"status {status}: {text}")
        return RemoteError(f"{self.url} is not a policy server: status {status}, {text}")

    def _exchange(
        self, connection: ClientConnection, frame: bytes, timeout_s: float
    ) -> dict[Any, Any]:
        try:
            self._nothing_waits(connection)
            self._limit_send(connection, timeout_s)
            connection.send(frame)
            answer = connection.recv(timeout_s)
        except TimeoutError as error:
            msg = (
                f"{self.url} did not answer request {self.asked} within {timeout_s:g} s; its late "
                "answer will not be used. Is it overloaded, or its deadline too short?"
            )
            raise RemoteError(msg) from error
        except ConnectionClosed as error:
            msg = (
                f"{self.url} is gone since request {self.asked} ({error}); see that the server "
                f"runs: {_GONE}"
            )
            raise ServerGoneError(msg) from error
        return read_reply(answer, self.url, self.asked)

    def _nothing_waits(self, connection: ClientConnection) -> None:
        """Nothing is asked, so nothing may have come.

        Raises:
            RemoteError: if something has.
        """
        try:
            early = connection.recv(timeout=0)
        except TimeoutError:
            return
        if isinstance(early, str):
            msg = f"{self.url} said by itself: {_last_line(early)}"
        else:
            msg = f"STALE_ACTION: {self.url} sent a reply before request {self.asked} was sent"
        raise RemoteError(msg)

    @staticmethod
    def _limit_send(connection: ClientConnection, timeout_s: float) -> None:
        """Let a send fail too where the server has stopped reading; recv has its own limit."""
        if sys.platform == "win32":
            value: bytes | int = int(timeout_s * 1000)
        else:
            value = struct.pack("ll", int(timeout_s), int(timeout_s % 1 * 1e6))
        with suppress(OSError):  # closed meanwhile: the send says it better
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)


class _BusyError(Exception):
    """The server is there and cannot take us now."""


def read_reply(frame: bytes | str, url: str, number: int | None) -> dict[Any, Any]:
    """Read an answer.

    Args:
        frame: as it came.
        url: url of the server, for the texts.
        number: number of the request; None where it had none.

    Raises:
        RemoteError: if it is an error, cannot be read, or answers another request.
    """
    if isinstance(frame, str):
        log.debug("%s answered with an error:\n%s", url, frame)
        msg = f"{url} answered with an error: {_last_line(frame)}"
        raise RemoteError(msg)
    try:
        reply = decode(frame)
    except WireFormatError as error:
        msg = f"{url}: the reply to request {number} cannot be read: {error}"
        raise RemoteError(msg) from error
    answered = reply.get(ours("seq"), number)
    if answered != number:
        msg = f"STALE_ACTION: {url} answered request {answered!r}, asked was {number}"
        raise RemoteError(msg)
    return reply


def raised_there(reply: Mapping[Any, Any], url: str) -> str:
    """What the policy behind a server of ours raised, a fault's code in front where it has one."""
    log.debug("the policy at %s raised:\n%s", url, reply.get(ours("traceback")))
    text, kind = str(reply[ours("error")]), str(reply.get(ours("kind"), "error"))
    code = text.partition(":")[0]
    coded = code.isupper() and "_" in code and " " not in code
    return f"{text if coded else f'{kind}: {text}'} (raised by the policy at {url})"


def open_websocket(
    url: str, headers: Mapping[str, str], timeout_s: float, max_message_bytes: int
) -> ClientConnection:
    """A websocket to a server; on this machine never through a proxy.

    No pings: openpi's server cannot answer one while its policy thinks, however healthy it is.
    """
    local = is_loopback(urlsplit(url).hostname or "")
    manager = connect(
        url,
        compression=None,
        max_size=max_message_bytes,
        additional_headers=dict(headers),
        open_timeout=timeout_s,
        close_timeout=1.0,
        ping_interval=None,
        proxy=None if local else True,
    )
    return manager.__enter__()  # newer releases want a "with"; the caller closes it all the same


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2][:500] or "an empty text"
