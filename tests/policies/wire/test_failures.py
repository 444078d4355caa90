"""Errors, lost connections, and servers that are not ours."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from websockets.utils import accept_key

from policies import Observation
from policies.wire.address import Listen
from policies.wire.client import RemoteError
from policies.wire.codec import WireFormatError, decode, encode
from tests.policies.wire.peers import foreign, remote, same

# ---- errors and lost connections -----------------------------------------------------------


def test_what_the_policy_raises_is_told_and_the_episode_goes_on(
    serve: Any, teller: Any, observe: Any, answer: Any
) -> None:
    there = remote(
        serve(teller({1: ValueError("no plan"), 2: RuntimeError("MALFORMED_TOKENS: x")})).url
    )
    there.reset("x")
    there.act(observe())
    with pytest.raises(RemoteError, match=r"^ValueError: no plan \(raised by the policy at ws://"):
        there.act(observe())
    with pytest.raises(RemoteError, match=r"^MALFORMED_TOKENS: x \(raised"):
        there.act(observe())
    assert same(there.act(observe()), answer(observe(), 3))


def test_a_late_answer_is_never_taken_for_the_next(
    serve: Any, teller: Any, observe: Any, answer: Any
) -> None:
    release = threading.Event()
    policy = teller({1: lambda: release.wait(60)})
    there = remote(serve(policy).url, timeout_s=1.5)
    there.reset("x")
    there.act(observe(1))
    with pytest.raises(RemoteError, match=r"did not answer request 3 within 1.5 s"):
        there.act(observe(2))
    with pytest.raises(RemoteError, match=r"lost before .*did not answer.*next episode connects"):
        there.act(observe(3))
    release.set()
    there.reset("y")
    assert same(there.act(observe(4)), answer(observe(4), 0))


def test_the_next_episode_connects_to_a_restarted_server(
    serve: Any, teller: Any, observe: Any, answer: Any
) -> None:
    first = serve(teller())
    there = remote(first.url)
    there.reset("x")
    there.act(observe())
    first.shutdown()
    with pytest.raises(RemoteError, match=r"ws://127.0.0.1:\d+ (is gone|said|: )"):
        there.act(observe())
    threading.Timer(0.4, serve, [teller()], {"listen": Listen(port=first.port)}).start()
    there.reset("y")
    assert same(there.act(observe()), answer(observe(), 0))


def test_a_server_restarted_between_episodes_is_not_noticed(
    serve: Any, teller: Any, observe: Any
) -> None:
    first = serve(teller())
    there = remote(first.url)
    there.reset("x")
    there.act(observe())
    first.shutdown()
    second = teller()
    serve(second, listen=Listen(port=first.port))
    there.reset("y")
    there.act(observe())
    assert second.instructions == ["y"]


def test_a_server_that_went_unnoticed_is_found_again_at_the_next_episode(
    serve: Any, teller: Any, observe: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its farewell may still be under way, or never come, when the episode begins."""
    first = serve(teller())
    there = remote(first.url)
    first.shutdown()
    second = teller()
    serve(second, listen=Listen(port=first.port))
    monkeypatch.setattr(there._wire, "alive", lambda: True)
    there.reset("y")
    there.act(observe())
    assert second.instructions == ["y"]


def test_another_policy_behind_the_same_address_is_refused(
    serve: Any, teller: Any, observe: Any
) -> None:
    first = serve(teller())
    there = remote(first.url)
    first.shutdown()
    other = teller()
    other.name = "other"
    serve(other, listen=Listen(port=first.port))
    with pytest.raises(RemoteError, match="now serves 'other', this run began with 'teller'"):
        there.reset("y")


def test_no_server_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(RemoteError, match=r"no policy server at ws://.* serve-policy"):
        remote(f"127.0.0.1:{port}", patience_s=0.3)


@contextmanager
def deaf() -> Iterator[str]:
    """A server that shakes hands, sends its first frame and then reads nothing any more."""
    done = threading.Event()

    def serve_one() -> None:
        connection, _ = listening.accept()
        with connection:
            request = b""
            while not request.endswith(b"\r\n\r\n"):
                request += connection.recv(4096)
            (key,) = re.findall(rb"(?i)sec-websocket-key: (\S+)", request)
            connection.sendall(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n"
                % accept_key(key.decode()).encode()
            )
            first = encode({})
            connection.sendall(bytes([0x82, len(first)]) + first)
            done.wait(30.0)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve_one)
        thread.start()
        yield f"ws://127.0.0.1:{listening.getsockname()[1]}"
        done.set()
        thread.join(10.0)


def test_a_server_that_stops_reading_hits_the_deadline() -> None:
    seen = Observation(image=np.zeros((4000, 4000, 3), np.uint8))
    with deaf() as url:
        there = remote(url, timeout_s=0.3, first_timeout_s=0.3)
        there.reset("x")
        began = time.monotonic()
        with pytest.raises(RemoteError, match=r"is gone|did not answer"):
            there.act(seen)
        assert time.monotonic() - began < 15.0


# ---- servers that are not ours -------------------------------------------------------------


def echo_actions(connection: Any) -> None:
    """As openpi's server: no keys of ours."""
    connection.send(encode({"model": "pi0"}))
    for count, frame in enumerate(connection):
        request = decode(frame)
        actions = np.full((5, 7), float(count), np.float32)
        connection.send(encode({"actions": actions, "keys": sorted(map(str, request))}))


def test_a_server_of_openpi_gets_its_keys_and_no_reset(observe: Any) -> None:
    asked: list[dict[Any, Any]] = []

    def handler(connection: Any) -> None:
        connection.send(encode({}))
        for frame in connection:
            asked.append(decode(frame))
            connection.send(encode({"out": {"actions": np.ones((3, 7), np.float32)}}))

    keys = {
        "image": "images/front",
        "state": "state",
        "layout": "tcp_position,gripper",
        "actions": "out/actions",
    }
    with foreign(handler) as url:
        there = remote(url, keys=keys)
        there.reset("fold the towel")
        output = there.act(observe(0, ""))
        there.close()
    assert output.action.tolist() == [1.0] * 7
    assert output.chunk is not None
    assert output.chunk.shape == (3, 7)
    assert there.served is None
    (request,) = asked
    assert sorted(request) == ["images/front", "prompt", "state", "vlawatch/seq"]
    assert request["prompt"] == "fold the towel"
    assert request["state"].tolist() == [*observe(0).tcp_position, 0.25]


def test_a_reply_that_nobody_asked_for_is_stale(observe: Any) -> None:
    def twice(connection: Any) -> None:
        connection.send(encode({}))
        for _ in connection:
            for _ in range(2):
                connection.send(encode({"actions": np.zeros((1, 7))}))

    with foreign(twice) as url:
        there = remote(url)
        there.reset("x")
        there.act(observe())
        time.sleep(0.2)
        with pytest.raises(RemoteError, match=r"^STALE_ACTION: ws://.* before request 2"):
            there.act(observe())


def test_a_wrong_sequence_number_is_stale(observe: Any) -> None:
    def old(connection: Any) -> None:
        connection.send(encode({}))
        for _ in connection:
            connection.send(encode({"actions": np.zeros((1, 7)), "vlawatch/seq": 0}))

    with foreign(old) as url:
        there = remote(url)
        there.reset("x")
        with pytest.raises(RemoteError, match=r"^STALE_ACTION: .* answered request 0, asked was 1"):
            there.act(observe())


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Traceback\n\nKeyError: 'state'", r"answered with an error: KeyError: 'state'"),
        (b"\xc1", r"reply to request 1 cannot be read"),
        (encode({"action": 1}), r"no 'actions'; it has action"),
        (encode({"actions": "none"}), r"expected numbers of shape"),
        (encode({"actions": np.zeros((0, 7))}), r"empty"),
        (encode({"actions": np.zeros((2, 2, 2))}), r"expected numbers of shape"),
        (encode({"actions": [[1.0], [1.0, 2.0]]}), r"expected numbers of shape"),
        (encode({"actions": [1.0], "vlawatch/token_logits": "x"}), r"token_logits"),
        (encode({"actions": [1.0], "vlawatch/action_token_range": [1]}), r"two integers"),
        (encode({"actions": [1.0], "vlawatch/extra": [1]}), r"map of numbers"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_reply_that_is_no_action_is_an_error(reply: Any, text: str, observe: Any) -> None:
    def handler(connection: Any) -> None:
        connection.send(encode({}))
        for _ in connection:
            connection.send(reply)

    with foreign(handler) as url:
        there = remote(url)
        there.reset("x")
        with pytest.raises((RemoteError, WireFormatError), match=text):
            there.act(observe())


@pytest.mark.parametrize(
    ("first", "text"),
    [
        ("hello", "does not speak openpi's protocol"),
        (encode({"vlawatch/protocol": 99}), "version 99"),
    ],
)
def test_a_first_frame_that_is_not_openpis(first: Any, text: str) -> None:
    def handler(connection: Any) -> None:
        connection.send(first)
        for _ in connection:
            pass

    with foreign(handler) as url, pytest.raises(RemoteError, match=text):
        remote(url)
