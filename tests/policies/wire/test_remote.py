from __future__ import annotations

import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect
from websockets.sync.server import serve as serve_websocket
from websockets.typing import Origin
from websockets.utils import accept_key

from envs.robot import ROBOTS
from monitor.errors import ConfigError
from policies import Observation, load_policy
from policies.wire.address import Listen
from policies.wire.client import RemoteError
from policies.wire.codec import WireFormatError, decode, encode
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


# ---- what travels --------------------------------------------------------------------------


def test_every_signal_travels_bit_by_bit(
    serve: Any, teller: Any, observe: Any, answer: Any
) -> None:
    policy = teller()
    there = load_policy("remote", url=serve(policy).url)
    there.reset("stack the cubes")
    for step in range(3):
        assert same(there.act(observe(step)), answer(observe(step), step))
    assert policy.instructions == ["stack the cubes"]
    assert there.served == "teller"  # type: ignore[attr-defined]
    assert there.signals == teller.signals


def test_every_observation_travels_bit_by_bit(serve: Any, teller: Any, observe: Any) -> None:
    policy = teller()
    there = remote(serve(policy).url)
    there.reset("")
    there.act(observe(3))
    (got,), want = policy.seen, observe(3)
    assert got.image.tobytes() == want.image.tobytes()
    assert got.instruction == want.instruction
    assert got.gripper == want.gripper
    for name in ("tcp_position", "tcp_quaternion", "joint_positions"):
        assert getattr(got, name).tobytes() == getattr(want, name).tobytes()


def test_only_the_signals_that_are_asked_for_travel(serve: Any, teller: Any, observe: Any) -> None:
    there = remote(serve(teller()).url, signals=["hidden"])
    there.reset("x")
    output = there.act(observe())
    assert output.hidden is not None
    assert output.token_logits is None
    assert output.samples is None
    assert there.signals == {"hidden"}


def test_the_environment_travels_as_far_as_a_policy_needs(
    serve: Any, teller: Any, observe: Any
) -> None:
    policy = teller()
    space = SimpleNamespace(low=np.full(7, -0.1, np.float32), high=np.full(7, 0.1, np.float32))
    env = SimpleNamespace(action_space=space, control_dt_s=0.2, robot=ROBOTS["widowx"])
    there = remote(serve(policy).url)
    there.bind(env)
    there.reset("x")
    assert policy.env.action_space.low.tobytes() == space.low.tobytes()
    assert policy.env.unwrapped.robot is ROBOTS["widowx"]
    assert policy.env.control_dt_s == 0.2
    with pytest.raises(AttributeError, match="'objects', which does not travel"):
        policy.env.objects  # noqa: B018


def test_a_chunk_travels_as_openpi_actions(serve: Any, teller: Any, observe: Any) -> None:
    class Chunked(teller):  # type: ignore[misc]
        def act(self, observation: Any) -> Any:
            output = super().act(observation)
            chunk = np.vstack([output.action, np.ones((3, 7))])
            return SimpleNamespace(action=output.action, chunk=chunk, decode_ok=True)

    there = remote(serve(Chunked()).url)
    there.reset("x")
    output = there.act(observe())
    assert output.chunk is not None
    assert output.chunk.shape == (4, 7)
    assert output.action.tobytes() == output.chunk[0].tobytes()


def test_torch_logits_arrive_as_numpy(serve: Any, teller: Any, observe: Any) -> None:
    torch = pytest.importorskip("torch")
    logits = torch.randn(7, 9).bfloat16()

    class Torch(teller):  # type: ignore[misc]
        def act(self, observation: Any) -> Any:
            return SimpleNamespace(action=torch.zeros(7), token_logits=logits)

    there = remote(serve(Torch()).url)
    there.reset("x")
    got = there.act(observe()).token_logits
    assert got.dtype == np.float32
    assert (torch.from_numpy(got) == logits.float()).all()


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


@contextmanager
def stock(url: str) -> Iterator[Any]:
    """A connection as openpi's client makes it, after its first frame."""
    with connect(url, compression=None, max_size=None, proxy=None) as connection:
        decode(connection.recv())
        yield connection


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


# ---- what is told at the start ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ((0.03, 0.04, 0.05), (0.03, 0.04, 0.05)),
        (None, None),
        ((0.03, 0.04), None),
        ((0.03, -1.0, 0.05), None),
        ((0.03, float("nan"), 0.05), None),
    ],
)
def test_the_translation_q99_m_travels(serve: Any, teller: Any, told: Any, expected: Any) -> None:
    policy = teller()
    policy.translation_q99_m = told
    assert remote(serve(policy).url).translation_q99_m == expected


# ---- arguments -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"url": "http://127.0.0.1:8000"},
        {"url": "ws://me:secret@127.0.0.1:8000"},
        {"url": "ws://:8000"},
        {"url": "ws://127.0.0.1:99999"},
        {"signals": ["logits"]},
        {"keys": {"picture": "x"}},
        {"keys": {"layout": "joint_positions,gripper"}},
        {"keys": {"layout": "gripper,gripper"}},
        {"keys": {"layout": "torque"}},
        {"keys": {"image": ""}},
        {"timeout_s": 0.0},
        {"api_key_env": "NO_SUCH_VARIABLE"},
    ],
    ids=repr,
)
def test_wrong_arguments_are_refused_before_anything_is_sent(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        RemotePolicy(**{"url": "ws://127.0.0.1:1", **given})
