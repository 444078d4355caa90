"""Servers and clients on the other side of the wire that are not ours, and a comparison."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from websockets.sync.client import connect
from websockets.sync.server import serve as serve_websocket

from policies.wire.codec import decode
from policies.wire.messages import SIGNALS
from policies.wire.remote import RemotePolicy


def same(one: Any, other: Any) -> bool:
    """Equal to the last bit, NaN included."""
    for name in SIGNALS:
        a, b = getattr(one, name), getattr(other, name)
        if isinstance(a, np.ndarray):
            if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
                return False
        elif a != b:
            return False
    return True


@contextmanager
def foreign(handler: Callable[[Any], None]) -> Iterator[str]:
    """A server that is not ours; the handler speaks with each client."""
    logging.getLogger("websockets.server").setLevel(logging.CRITICAL)
    with serve_websocket(handler, "127.0.0.1", 0, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join(10)


def remote(url: str, **given: Any) -> RemotePolicy:
    return RemotePolicy(url, **{"patience_s": 3.0, **given})


@contextmanager
def stock(url: str) -> Iterator[Any]:
    """A connection as openpi's client makes it, after its first frame."""
    with connect(url, compression=None, max_size=None, proxy=None) as connection:
        decode(connection.recv())
        yield connection
