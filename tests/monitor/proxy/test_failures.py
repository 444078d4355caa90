from __future__ import annotations

import threading
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("msgpack")
pytest.importorskip("websockets")

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from monitor.trace import RunWriter
from policies.wire.address import Listen
from policies.wire.client import RemoteError
from policies.wire.codec import decode, encode
from policies.wire.listener import Listener
from policies.wire.remote import RemotePolicy
from policies.wire.server import PolicyService
from tests.monitor.proxy.doubles import (
    FREE,
    Recorded,
    Walker,
    Wires,
    episodes,
    frame,
    observation,
)


def test_an_unreadable_frame_passes_and_is_reported(wires: Wires, tmp_path: Path) -> None:
    url = wires.proxy(wires.serve(Walker()), tmp_path / "run")
    with connect(url, compression=None, proxy=None) as client:
        client.recv()
        client.send(frame())
        client.recv()
        client.send(b"\xc1")
        answer = client.recv()
        assert isinstance(answer, str)
        assert answer.startswith("refused:")
        with pytest.raises(ConnectionClosed) as closed:
            client.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1007
    (episode,) = episodes(tmp_path / "run", 1)
    assert episode["outcome"] == "error"
    assert "refused:" in episode["message"]
    assert episode["faults"]["POLICY_ERROR"] == 1


def test_an_error_of_the_policy_passes_and_is_reported(wires: Wires, tmp_path: Path) -> None:
    url = wires.proxy(wires.serve(Walker({1: ValueError("no plan")})), tmp_path / "run")
    there = RemotePolicy(url, patience_s=5.0)
    there.reset("x")
    there.act(observation())
    with pytest.raises(RemoteError, match="ValueError: no plan"):
        there.act(observation())
    there.act(observation())  # unwatched, as the episode has its end
    there.reset("y")
    there.act(observation())
    there.close()
    first, second = episodes(tmp_path / "run", 2)
    assert (first["outcome"], first["steps"]) == ("error", 2)
    assert "ValueError: no plan" in first["message"]
    assert (second["instruction"], second["steps"]) == ("y", 1)


def test_a_client_that_gives_up_waiting_frees_the_server(wires: Wires, tmp_path: Path) -> None:
    release = threading.Event()
    policy = Walker({1: lambda: release.wait(60)})
    there = RemotePolicy(
        wires.proxy(wires.serve(policy), tmp_path / "run"), timeout_s=2.0, patience_s=8.0
    )
    there.reset("x")
    there.act(observation())
    with pytest.raises(RemoteError, match="did not answer"):
        there.act(observation())
    # The reply comes once the proxy has seen the client go, or it may pass before.
    assert len(episodes(tmp_path / "run", 1)) == 1
    release.set()
    there.reset("y")
    there.act(observation(5))
    there.close()
    first, second = episodes(tmp_path / "run", 2)
    assert "the client left before" in first["message"]
    assert (second["instruction"], second["steps"]) == ("y", 1)


def test_an_unrequested_frame_passes_and_is_stale(wires: Wires, tmp_path: Path) -> None:
    class Twice:
        trouble = Recorded.trouble
        check = Recorded.check

        def serve(self, connection: Any) -> None:
            connection.send(encode({}))
            for _ in connection:
                connection.send(encode({"actions": np.zeros((1, 7))}))
                connection.send(encode({"actions": np.ones((1, 7))}))

    with Listener(Twice(), FREE).background() as server:
        url = wires.proxy(server, tmp_path / "run")
        with connect(url, compression=None, proxy=None) as client:
            client.recv()
            client.send(frame())
            first, second = client.recv(), client.recv()
            assert decode(first)["actions"][0, 0] == 0.0
            assert decode(second)["actions"][0, 0] == 1.0
            client.send(frame())
            client.recv()
    (episode,) = episodes(tmp_path / "run", 1)
    assert episode["faults"]["STALE_ACTION"] == 1


def test_no_server_closes_the_client_with_the_reason(wires: Wires) -> None:
    url = wires.proxy("ws://127.0.0.1:1")
    with pytest.raises(RemoteError, match=r"try again later.*127.0.0.1:1"):
        RemotePolicy(url, patience_s=0.3)


def test_the_servers_key_is_asked_for(wires: Wires, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener(PolicyService(Walker), Listen(port=0, api_key="sesame"))
    with listener.background() as server:
        monkeypatch.setenv("MINE", "wrong")
        with pytest.raises(RemoteError, match="refuses us"):
            RemotePolicy(wires.proxy(server), api_key_env="MINE", patience_s=2.0)
        monkeypatch.setenv("MINE", "sesame")
        RemotePolicy(wires.proxy(server), api_key_env="MINE", patience_s=2.0).close()
        guarded = wires.proxy(server, key="sesame", listen=Listen(port=0, api_key="mine"))
        monkeypatch.setenv("MINE", "mine")
        RemotePolicy(guarded, api_key_env="MINE", patience_s=5.0).close()


def test_health_is_the_servers(wires: Wires) -> None:
    def status(url: str) -> int:
        http = HTTPConnection("127.0.0.1", int(url.rpartition(":")[2]), timeout=10)
        http.request("GET", "/healthz")
        got = http.getresponse().status
        http.close()
        return got

    assert status(wires.proxy(wires.serve(Walker()))) == 200
    assert status(wires.proxy("ws://127.0.0.1:1")) == 503


def test_another_robot_needs_another_folder(
    wires: Wires, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:

    url = wires.proxy(wires.serve(Walker()), tmp_path / "run", declared=None)
    for high in (0.5, 0.6):
        there = RemotePolicy(url, patience_s=5.0)
        space = SimpleNamespace(low=np.full(7, -high), high=np.full(7, high))
        there.bind(SimpleNamespace(action_space=space))
        there.reset("x")
        there.act(observation())
        there.close()
        episodes(tmp_path / "run", 1)
    assert "start a separate proxy" in caplog.text


@pytest.mark.parametrize(("acts", "passed"), [(False, 4), (True, 1)])
def test_a_full_disk_stops_the_trace_but_not_a_working_robot(
    acts: bool,
    passed: int,
    wires: Wires,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Only a proxy that acts answers for every action, so it sends none that it cannot judge."""
    url = wires.proxy(wires.serve(Walker()), tmp_path / "run", acts=acts)
    written = RunWriter.write_step

    def full(self: RunWriter, record: Any) -> None:
        if record["step"] == 1:
            raise OSError(28, "No space left on device")
        written(self, record)

    monkeypatch.setattr(RunWriter, "write_step", full)
    with connect(url, compression=None, proxy=None) as client:
        client.recv()
        got = []
        for step in range(passed):
            client.send(frame(step))
            got.append(decode(client.recv())["actions"][0])
        if acts:
            client.send(frame())
            assert "No space left" in str(client.recv())
    want = [Walker().act(observation()).action]
    assert np.array_equal(got[0], want[0])
    assert len({tuple(one) for one in got}) == passed
    if passed > 1:
        assert "No space left on device" in caplog.text
