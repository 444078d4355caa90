from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("msgpack")
pytest.importorskip("websockets")

from websockets.sync.client import connect

from monitor.proxy.client_env import rewrite
from monitor.trace import RunFolder
from policies.wire.client import RemoteError
from policies.wire.codec import decode, encode
from policies.wire.keys import KeyMap
from policies.wire.remote import RemotePolicy
from tests.monitor.proxy.doubles import Walker, Wires, episodes, frame, observation


def test_a_halt_ends_the_client_with_a_text(wires: Wires, tmp_path: Path) -> None:
    url = wires.proxy(wires.serve(Walker({1: float("nan")})), tmp_path / "run", acts=True)
    there = RemotePolicy(url, patience_s=5.0)
    there.reset("x")
    there.act(observation())
    with pytest.raises(RemoteError, match=r"answered with an error: halted by vlawatch: .*step 1"):
        there.act(observation())
    (episode,) = episodes(tmp_path / "run", 1)
    assert episode["outcome"] == "halted"


def test_watching_only_lets_the_same_action_pass(wires: Wires, tmp_path: Path) -> None:
    url = wires.proxy(wires.serve(Walker({1: float("nan")})), tmp_path / "run")
    there = RemotePolicy(url, patience_s=5.0)
    there.reset("x")
    there.act(observation())
    assert np.isnan(there.act(observation()).action[0])


def test_an_action_out_of_its_space_is_clipped_on_the_way(wires: Wires, tmp_path: Path) -> None:
    policy = Walker({1: 1.5}, rows=4)
    url = wires.proxy(wires.serve(policy), tmp_path / "run", acts=True)
    with connect(url, compression=None, proxy=None) as client:
        client.recv()
        client.send(frame())
        plain = decode(client.recv())
        client.send(frame())
        clipped = decode(client.recv())["actions"]
    assert np.abs(plain["actions"][1:]).max() > 0.0
    assert clipped[0, 0] == 1.0
    assert not clipped[1:, :6].any()
    assert (clipped[1:, 6] == clipped[0, 6]).all()
    assert len(episodes(tmp_path / "run", 1)) == 1
    (lines,) = RunFolder(tmp_path / "run").steps().values()
    assert lines[1]["action"][0] == 1.5
    assert lines[1]["sent"][0] == 1.0


def test_rewriting_keeps_form_and_the_rest() -> None:
    keys = KeyMap.of({"actions": "out/actions"})
    given = {"out": {"actions": np.ones((3, 7), np.float32), "x": 1}, "server_timing": {"a": 2.0}}
    action = np.arange(7.0)
    got = decode(rewrite(encode(given), action, keys, 6))
    assert got["server_timing"] == {"a": 2.0}
    assert got["out"]["x"] == 1
    actions = got["out"]["actions"]
    assert actions.dtype == np.float32
    assert actions.tolist() == [action.tolist(), [0.0] * 6 + [6.0], [0.0] * 6 + [6.0]]
    single = decode(rewrite(encode({"actions": np.ones(7)}), action, KeyMap(), 6))
    assert single["actions"].tolist() == action.tolist()
