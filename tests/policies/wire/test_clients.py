"""Who may connect, and clients that are not ours."""

from __future__ import annotations

import threading
from http.client import HTTPConnection
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect
from websockets.typing import Origin

from monitor.errors import ConfigError
from policies.wire.address import Listen
from policies.wire.client import RemoteError
from policies.wire.codec import decode, encode
from tests.policies.wire.peers import remote, same, stock

# ---- who may connect -----------------------------------------------------------------------


def test_a_key_is_asked_for_and_sent(
    serve: Any, teller: Any, observe: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(teller(), listen=Listen(port=0, api_key="sesame"))
    monkeypatch.delenv("VLAWATCH_API_KEY", raising=False)
    with pytest.raises(RemoteError, match=r"refuses us .*VLAWATCH_API_KEY"):
        remote(server.url)
    monkeypatch.setenv("THEIRS", "sesam")
    with pytest.raises(RemoteError, match=r"refuses us"):
        remote(server.url, api_key_env="THEIRS")
    monkeypatch.setenv("THEIRS", "sesame")
    there = remote(server.url, api_key_env="THEIRS")
    there.reset("x")
    there.act(observe())


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "127.0.0.1.nip.io"]
)
def test_another_address_than_loopback_needs_a_key(host: str) -> None:
    with pytest.raises(ConfigError, match="--api-key-env"):
        Listen(host=host)
    assert Listen(host=host, api_key="x").admits("Api-Key x")


@pytest.mark.parametrize("header", [None, "", "Api-Key", "Api-Key ", "Api-Key y", "Bearer x", "ü"])
def test_a_wrong_header_is_not_admitted(header: str | None) -> None:
    assert not Listen(api_key="x").admits(header)


def test_health_needs_no_key_and_no_free_place(serve: Any, teller: Any) -> None:
    server = serve(teller(), listen=Listen(port=0, api_key="sesame"))
    for path, status in (("/healthz", 200), ("/", 401)):
        http = HTTPConnection("127.0.0.1", server.port, timeout=10)
        upgrade = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            "Sec-WebSocket-Version": "13",
        }
        http.request("GET", path, headers=upgrade if path == "/" else {})
        assert http.getresponse().status == status
        http.close()


def test_a_browser_page_is_refused(serve: Any, teller: Any) -> None:
    with pytest.raises(InvalidHandshake):
        connect(serve(teller()).url, origin=Origin("https://example.org"), proxy=None)


def test_a_client_too_many_is_told_so_and_gets_in_when_one_leaves(
    serve: Any, teller: Any, observe: Any
) -> None:
    server = serve(teller())
    first = remote(server.url)
    with pytest.raises(RemoteError, match=r"busy: 1 client.*--clients"):
        remote(server.url, patience_s=1.5)
    threading.Timer(0.3, first.close).start()
    second = remote(server.url)
    second.reset("x")
    second.act(observe())


def test_clients_have_instances_of_their_own(
    serve: Any, teller: Any, observe: Any, answer: Any
) -> None:
    made: list[Any] = []

    class Kept(teller):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    server = serve(Kept, clients=2)
    one, two = remote(server.url), remote(server.url)
    one.reset("one")
    two.reset("two")
    assert same(one.act(observe(1)), answer(observe(1), 0))
    assert same(two.act(observe(2)), answer(observe(2), 0))
    assert same(one.act(observe(3)), answer(observe(3), 1))
    assert sorted(policy.instructions[0] for policy in made) == ["one", "two"]


# ---- clients that are not ours -------------------------------------------------------------


def test_a_changed_prompt_begins_an_episode_for_a_stock_client(
    serve: Any, teller: Any, observe: Any, answer: Any
) -> None:
    policy = teller()
    with stock(serve(policy).url) as connection:
        image = observe().image
        for prompt in ("a", "a", "b"):
            connection.send(encode({"observation/image": image, "prompt": prompt}))
            reply = decode(connection.recv())
            assert sorted(reply) == ["actions", "server_timing"]
            assert reply["server_timing"]["infer_ms"] >= 0.0
            assert reply["actions"].shape == (1, 7)
    assert policy.instructions == ["a", "b"]


def test_an_error_is_a_text_frame_for_a_stock_client(serve: Any, teller: Any, observe: Any) -> None:
    policy = teller({0: ValueError("no plan")})
    with stock(serve(policy).url) as connection:
        connection.send(encode({"observation/image": observe().image, "prompt": "a"}))
        text = connection.recv()
        assert isinstance(text, str)
        assert text.startswith("Traceback")
        assert text.rstrip().endswith("ValueError: no plan")
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1011


@pytest.mark.parametrize(
    "frame",
    [
        "a text",
        b"",
        b"\xc1",
        b"\x93\x01\x02\x03",
        encode({"prompt": 3}),
        encode({"observation/image": np.zeros((2, 2), np.uint8), "prompt": "x"}),
        encode({"observation/image": np.zeros((2, 2, 3), np.float32), "prompt": "x"}),
        encode({"vlawatch/seq": "one"}),
        encode({"vlawatch/reset": "now"}),
        encode({"vlawatch/tcp_position": np.zeros(4), "prompt": "x"}),
        encode({"vlawatch/reset": {"instruction": "x", "env": {"action_low": 3}}}),
    ],
    ids=lambda frame: repr(frame)[:40],
)
def test_a_malformed_frame_is_refused_and_the_server_lives(
    frame: Any, serve: Any, teller: Any, observe: Any
) -> None:
    server = serve(teller())
    with stock(server.url) as connection:
        connection.send(frame)
        assert isinstance(connection.recv(), str)
        with pytest.raises(ConnectionClosed):
            connection.recv()
    there = remote(server.url)
    there.reset("x")
    there.act(observe())


def test_a_frame_that_is_too_long_closes_the_connection(
    serve: Any, teller: Any, observe: Any
) -> None:
    server = serve(teller(), max_message_bytes=1000)
    there = remote(server.url)
    there.reset("x")
    with pytest.raises(RemoteError, match="1009"):
        there.act(observe())
