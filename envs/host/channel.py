"""Messages between two processes over an inherited socket, large arrays through shared memory."""

from __future__ import annotations

import json
import select
import socket
import struct
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from envs.host.arena import Arena
from envs.host.codec import decode, encode

__all__ = ["Channel", "ChannelClosedError"]

MAGIC: Final = b"vlaw"
SHARED_FROM_BYTES: Final = 16384
"""Smaller arrays travel in the message: a copy through the socket is as fast."""

LOOK_S: Final = 0.5
"""How often a waiting end asks whether the other process still runs."""

_PREFIX: Final = struct.Struct("<4sIIQ")
_LARGEST_TREE: Final = 1 << 28


class ChannelClosedError(ConnectionError):
    """The other side is gone, or writes something that is not a message."""


class Channel:
    """One end; messages are values that :mod:`envs.host.codec` can take apart.

    Args:
        connected: stream socket; owned from here on.
        arena: memory shared with the other end.
        shares: put large arrays of what is sent there; only one end may.
        alive: whether the other process still runs, asked while nothing comes: something that it
            started may hold its end of the socket open after its death.
    """

    def __init__(
        self,
        connected: socket.socket,
        arena: Arena,
        *,
        shares: bool,
        alive: Callable[[], bool] = lambda: True,
    ) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._arena = arena
        self._shares = shares
        self._alive = alive

    def fileno(self) -> int:
        """Return the descriptor of the socket, for ``select``."""
        return self._socket.fileno()

    def send(self, message: Any, *, until: float | None = None) -> None:
        """Send a message.

        Args:
            message: value.
            until: moment of ``time.monotonic`` to give up at; None waits.

        Raises:
            ChannelClosedError: if the other side is gone.
            TimeoutError: if it does not read.
        """
        tree, arrays = encode(message)
        self._arena.clear()
        table: list[tuple[str, tuple[int, ...], int | None]] = []
        parts: list[bytes] = []
        for array in arrays:
            shared = self._shares and array.nbytes >= SHARED_FROM_BYTES
            table.append(
                (array.dtype.str, array.shape, self._arena.write(array) if shared else None)
            )
            if not shared:
                parts.append(array.tobytes())
        listed = json.dumps(table, separators=(",", ":")).encode("ascii")
        inline = b"".join(parts)
        prefix = _PREFIX.pack(MAGIC, len(tree), len(listed), len(inline))
        self._write(b"".join((prefix, tree, listed, inline)), until)

    def receive(self, *, until: float | None = None) -> Any:
        """Wait for a message.

        Args:
            until: moment of ``time.monotonic`` to give up at; None waits.

        Raises:
            ChannelClosedError: if the other side is gone or what it writes is not a message.
            TimeoutError: if nothing came in time.
        """
        magic, tree_size, listed_size, inline_size = _PREFIX.unpack(self._read(_PREFIX.size, until))
        if magic != MAGIC or tree_size + listed_size > _LARGEST_TREE:
            msg = f"what was received is not a message: it begins with {magic!r}"
            raise ChannelClosedError(msg)
        content = memoryview(self._read(tree_size + listed_size + inline_size, until))
        tree, content = bytes(content[:tree_size]), content[tree_size:]
        listed, inline = bytes(content[:listed_size]), content[listed_size:]
        arrays: list[NDArray[Any]] = []
        for name, shape, begin in json.loads(listed):
            dtype = np.dtype(name)
            if begin is None:
                size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
                memory, inline = bytearray(inline[:size]), inline[size:]
            else:
                memory = self._arena.read(begin, dtype, tuple(shape))
            # Over a bytearray of its own: the array may be written to, and nothing else has it.
            arrays.append(np.frombuffer(memory, dtype).reshape(shape))
        return decode(tree, arrays)

    def close(self) -> None:
        """Let go of socket and memory."""
        self._socket.close()
        self._arena.close()

    def _write(self, content: bytes, until: float | None) -> None:
        left = memoryview(content)
        while left:
            left = left[self._send_some(left, until) :]

    def _read(self, size: int, until: float | None) -> bytearray:
        content = bytearray(size)
        left = memoryview(content)
        while left:
            left = left[self._receive_some(left, until) :]
        return content

    def _send_some(self, content: memoryview, until: float | None) -> int:
        self._wait(until, write=True)
        try:
            return self._socket.send(content)
        except OSError as error:
            raise ChannelClosedError(str(error)) from error

    def _receive_some(self, content: memoryview, until: float | None) -> int:
        self._wait(until, write=False)
        try:
            count = self._socket.recv_into(content)
        except OSError as error:
            raise ChannelClosedError(str(error)) from error
        if count == 0:
            msg = "the other side has closed the connection"
            raise ChannelClosedError(msg)
        return count

    def _wait(self, until: float | None, *, write: bool) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT if write else select.POLLIN)
        while True:
            left_s = LOOK_S if until is None else min(LOOK_S, until - monotonic())
            if poll.poll(max(0.0, 1e3 * left_s)):
                return
            if not self._alive():
                msg = "the other process has ended"
                raise ChannelClosedError(msg)
            if until is not None and monotonic() >= until:
                raise TimeoutError
