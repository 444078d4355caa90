from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from time import monotonic

import numpy as np
import pytest

from envs.host.arena import START_BYTES, Arena, make_memory
from envs.host.channel import Channel, ChannelClosedError


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel, socket.socket]]:
    """Both ends of one connection; the second shares. Also the second's socket."""
    ours, theirs = socket.socketpair()
    memory = make_memory()
    near = Channel(ours, Arena(os.dup(memory)), shares=False)
    far = Channel(theirs, Arena(memory), shares=True)
    yield near, far, theirs
    near.close()
    far.close()


def soon() -> float:
    return monotonic() + 5.0


def test_pictures_of_any_size_cross_and_stay(ends: tuple[Channel, Channel, socket.socket]) -> None:
    near, far, _ = ends
    rng = np.random.default_rng(0)
    kept = []
    for side in (64, 480, 1024, 900):  # less and more than the memory at first
        picture = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
        far.send({"image": picture, "depth": picture[..., 0].astype(np.float32), "n": side})
        kept.append((picture, near.receive(until=soon())))
    assert START_BYTES < 1024 * 1024 * 3
    for picture, received in kept:
        assert np.array_equal(received["image"], picture)
        assert np.array_equal(received["depth"], picture[..., 0].astype(np.float32))
        assert received["n"] == len(picture)


def test_the_end_that_does_not_share_sends_all_inline(
    ends: tuple[Channel, Channel, socket.socket],
) -> None:
    near, far, _ = ends
    near.send([np.arange(20_000.0)], until=soon())
    assert far.receive(until=soon())[0][-1] == 19_999.0


def test_silence_ends_at_the_deadline(ends: tuple[Channel, Channel, socket.socket]) -> None:
    near, _, _ = ends
    began = monotonic()
    with pytest.raises(TimeoutError):
        near.receive(until=began + 0.1)
    assert 0.1 <= monotonic() - began < 2.0


def test_a_closed_end_is_noticed(ends: tuple[Channel, Channel, socket.socket]) -> None:
    near, _, theirs = ends
    theirs.shutdown(socket.SHUT_RDWR)
    with pytest.raises(ChannelClosedError, match="closed"):
        near.receive(until=soon())
    with pytest.raises(ChannelClosedError):
        near.send("x" * 10_000_000, until=soon())


def test_noise_is_no_message(ends: tuple[Channel, Channel, socket.socket]) -> None:
    near, _, theirs = ends
    theirs.send(b"Segmentation fault (core dumped)")
    with pytest.raises(ChannelClosedError, match="not a message"):
        near.receive(until=soon())


def test_a_dead_process_behind_an_open_socket_is_noticed() -> None:
    ours, theirs = socket.socketpair()
    near = Channel(ours, Arena(make_memory()), shares=False, alive=lambda: False)
    with pytest.raises(ChannelClosedError, match="ended"):
        near.receive()
    near.close()
    theirs.close()
