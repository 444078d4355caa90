"""Openpi's own client, from its package, against our server, our client and our proxy."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from websockets.sync.server import serve as serve_websocket

from monitor import Monitor
from monitor.proxy.request import ClientEnvInfo
from monitor.proxy.run import ProxyRun
from monitor.proxy.service import ProxyService, Upstream
from monitor.trace import RunFolder
from policies.wire.address import Listen
from policies.wire.codec import decode, encode
from policies.wire.listener import Listener
from policies.wire.remote import RemotePolicy

# openpi-client 0.1.2 opens its connection in a way that websockets 17 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:connect.. must be used:DeprecationWarning")

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def openpi() -> Iterator[Any]:
    """The modules of the real package, see scripts/openpi_client.sh."""
    folder = Path(os.environ.get("VLAWATCH_OPENPI_CLIENT", ROOT / "build/openpi-client"))
    if not (folder / "openpi_client").is_dir():
        message = f"{folder} holds no openpi_client; run: bash scripts/openpi_client.sh"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.syspath_prepend(str(folder))
        client = importlib.import_module("openpi_client.websocket_client_policy")
        codec = importlib.import_module("openpi_client.msgpack_numpy")
        assert Path(str(client.__file__)).is_relative_to(folder)
        yield SimpleNamespace(Client=client.WebsocketClientPolicy, codec=codec)
        for name in [name for name in sys.modules if name.partition(".")[0] == "openpi_client"]:
            del sys.modules[name]


@contextmanager
def openpi_server(codec: Any) -> Iterator[tuple[str, list[Any]]]:
    """A server as openpi's own, out of its client's codec; also what it was asked."""
    asked: list[Any] = []

    def handler(connection: Any) -> None:
        connection.send(codec.packb({"model": "pi0", "horizon": 5}))
        for frame in connection:
            request = codec.unpackb(frame)
            asked.append(request)
            actions = np.random.default_rng(len(asked)).standard_normal((5, 7), np.float32)
            timing = {"infer_ms": np.float64(1.5)}
            connection.send(codec.packb({"actions": actions, "server_timing": timing}))

    logging.getLogger("websockets.server").setLevel(logging.CRITICAL)
    with serve_websocket(handler, "127.0.0.1", 0, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}", asked
        server.shutdown()
        thread.join(10)


MESSAGE = {
    "observation/image": np.arange(48, dtype=np.uint8).reshape(4, 4, 3),
    "observation/state": np.array([0.1, np.nan, -np.inf, 1e-310]),
    "half": np.array([[1.5], [2.5]], np.float16),
    "flags": np.array([True, False]),
    "texts": np.array(["a", "bc"]),
    "scalar": np.float32(0.1),
    "plain": {"a": [1, None, 2.5, "x", b"y"], "b": True},
    "prompt": "stell die Tasse auf den Tisch",
}


def test_both_codecs_write_the_same_bytes_and_read_each_other(openpi: Any) -> None:
    ours, theirs = encode(MESSAGE), openpi.codec.packb(MESSAGE)
    assert ours == theirs
    for read in (decode(theirs), openpi.codec.unpackb(ours)):
        assert read.keys() == MESSAGE.keys()
        for name, value in MESSAGE.items():
            if isinstance(value, np.ndarray):
                assert read[name].tobytes() == value.tobytes()
                assert (read[name].dtype, read[name].shape) == (value.dtype, value.shape)
            else:
                assert read[name] == value


def test_their_client_asks_our_server(
    openpi: Any, serve: Any, teller: Any, observe: Any, answer: Any
) -> None:
    policy = teller({2: ValueError("no plan")})
    server = serve(policy, listen=Listen(port=0, api_key="sesame"))
    client = openpi.Client(host="127.0.0.1", port=server.port, api_key="sesame")
    assert client.get_server_metadata()["vlawatch/policy"] == "teller"
    for step in range(2):
        seen = observe(step)
        reply = client.infer({"observation/image": seen.image, "prompt": "fold the towel"})
        assert sorted(reply) == ["actions", "server_timing"]
        assert reply["actions"].tobytes() == answer(seen, step).action.tobytes()
    assert policy.instructions == ["fold the towel"]
    with pytest.raises(RuntimeError, match=r"Error in inference server:\nTraceback(.|\n)*no plan"):
        client.infer({"observation/image": observe().image, "prompt": "fold the towel"})


def test_our_client_asks_their_server(openpi: Any, observe: Any) -> None:
    with openpi_server(openpi.codec) as (url, asked):
        keys = {"state": "observation/state", "layout": "tcp_position,tcp_quaternion,gripper"}
        there = RemotePolicy(url, keys=keys, patience_s=5.0)
        there.reset("fold the towel")
        outputs = [there.act(observe(step, "")) for step in range(2)]
        there.close()
    assert there.served is None
    for count, output in enumerate(outputs, start=1):
        want = np.random.default_rng(count).standard_normal((5, 7), np.float32)
        assert output.chunk is not None
        assert output.chunk.tolist() == want.tolist()
        assert output.action.tolist() == want[0].tolist()
    seen = observe(1)
    assert asked[1]["prompt"] == "fold the towel"
    assert asked[1]["observation/image"].tobytes() == seen.image.tobytes()
    state = [*seen.tcp_position, *seen.tcp_quaternion, *seen.gripper]
    assert asked[1]["observation/state"].tolist() == state


def test_our_proxy_between_their_client_and_their_server(
    openpi: Any, observe: Any, tmp_path: Path
) -> None:
    declared = ClientEnvInfo(action_low=(-5.0,) * 7, action_high=(5.0,) * 7, control_dt_s=0.1)
    with openpi_server(openpi.codec) as (url, asked):
        run = ProxyRun(tmp_path / "run", env_name="robot", url=url)
        service = ProxyService(
            Upstream(url=url),
            run,
            lambda told, served: Monitor(action_low=told.action_low, action_high=told.action_high),
            declared=declared,
        )
        with Listener(service, Listen(port=0)).background() as between:
            client = openpi.Client(host=between)
            assert client.get_server_metadata() == {"model": "pi0", "horizon": 5}
            for count in range(1, 7):
                prompt = "fold the towel" if count < 5 else "open the drawer"
                reply = client.infer({"observation/image": observe(count).image, "prompt": prompt})
                want = np.random.default_rng(count).standard_normal((5, 7), np.float32)
                assert reply["actions"].tobytes() == want.tobytes()
                assert reply["server_timing"] == {"infer_ms": 1.5}
            client._ws.close()
            for _ in range(500):
                if len(RunFolder(tmp_path / "run").episodes()) == 2:
                    break
                time.sleep(0.02)
        run.close()
    assert len(asked) == 6
    first, second = RunFolder(tmp_path / "run").episodes()
    assert (first["instruction"], first["steps"]) == ("fold the towel", 4)
    assert (second["instruction"], second["steps"]) == ("open the drawer", 2)
    steps = RunFolder(tmp_path / "run").steps()[0]
    want = np.random.default_rng(1).standard_normal((5, 7), np.float32)
    assert steps[0]["action"] == want[0].tolist()
    assert steps[0]["sent"] == want[0].tolist()
    assert steps[3]["policy_ms"] > 0.0
