from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("msgpack")
pytest.importorskip("websockets")

from websockets.sync.client import connect

from envs.robot import ROBOTS
from monitor import Monitor, MonitorConfig
from monitor.proxy.request import ClientEnvInfo
from monitor.proxy.run import NO_VERDICT, ProxyRun
from monitor.proxy.service import ProxyService, ServedPolicy, Upstream
from monitor.trace import RunFolder
from policies.wire.codec import decode
from policies.wire.listener import Listener
from policies.wire.remote import RemotePolicy
from tests.monitor.proxy.doubles import (
    CLIENT,
    FREE,
    Recorded,
    Walker,
    Wires,
    episodes,
    frame,
    observation,
)


def test_every_byte_passes_in_both_directions(wires: Wires, tmp_path: Path) -> None:
    server = wires.serve(Walker(rows=3), always=["token_logits"])
    recorded = Recorded(server)
    tap = Listener(recorded, FREE)
    with (
        tap.background(),
        connect(wires.proxy(tap.url, tmp_path / "run"), compression=None, proxy=None) as client,
    ):
        metadata = client.recv()
        assert decode(metadata)["vlawatch/policy"] == "walker"
        sent, got = [], []
        odd = [frame(0), frame(1, extra=[1, None, {"x": 2.5}]), frame(2, "open the drawer")]
        for one in odd:
            client.send(one)
            sent.append(one)
            got.append(client.recv())
    assert [one for kind, one in recorded.frames if kind == "request"] == sent
    assert [one for kind, one in recorded.frames if kind == "reply"] == got
    first, second = episodes(tmp_path / "run", 2)
    assert (first["instruction"], first["steps"]) == ("fold the towel", 2)
    assert (second["instruction"], second["steps"]) == ("open the drawer", 1)


def test_steps_are_monitored_as_in_a_process_of_one(wires: Wires, tmp_path: Path) -> None:
    url = wires.proxy(wires.serve(Walker()), tmp_path / "run")
    there = RemotePolicy(url, patience_s=5.0)
    there.reset("fold the towel")
    alone = Monitor(
        MonitorConfig.model_validate({"controller": {"enforce": False}}),
        action_low=CLIENT.action_low,
        action_high=CLIENT.action_high,
    )
    alone.reset("fold the towel")
    from monitor import Step

    expected = []
    for step in range(5):
        seen = observation(step)
        output = there.act(seen)
        expected.append(
            alone.update(
                Step(
                    action=output.action,
                    token_logits=output.token_logits,
                    tcp_position=seen.tcp_position,
                    image=seen.image,
                )
            )
        )
    there.close()
    (episode,) = episodes(tmp_path / "run", 1)
    assert episode["outcome"] == "error"
    assert episode["message"] == NO_VERDICT
    (lines,) = RunFolder(tmp_path / "run").steps().values()
    assert [line["metrics"]["TB-E"] for line in lines] == [d.metrics["TB-E"] for d in expected]
    assert [line["metrics"] for line in lines] == [dict(d.metrics) for d in expected]
    assert [line["score"] for line in lines] == [d.score for d in expected]
    assert [line["sent"] for line in lines] == [line["action"] for line in lines]
    header = RunFolder(tmp_path / "run").header
    assert header["policy"]["name"] == "walker"
    assert header["env"]["action_high"] == [1.0] * 7


def test_the_clients_own_verdict_and_distance_are_taken(wires: Wires, tmp_path: Path) -> None:
    url = wires.proxy(wires.serve(Walker()), tmp_path / "run")
    with connect(url, compression=None, proxy=None) as client:
        client.recv()
        for step in range(3):
            more: dict[str, Any] = {
                "vlawatch/success": step == 2,
                "vlawatch/goal_distance": 0.3 - 0.1 * step,
            }
            client.send(frame(step, **more))
            client.recv()
    (episode,) = episodes(tmp_path / "run", 1)
    assert (episode["outcome"], episode["first_success"]) == ("success", 1)
    (lines,) = RunFolder(tmp_path / "run").steps().values()
    assert [line["goal_distance"] for line in lines] == pytest.approx([0.3, 0.2, 0.1])


def test_a_reset_of_a_vlawatch_client_begins_an_episode(wires: Wires, tmp_path: Path) -> None:
    policy = Walker()
    there = RemotePolicy(wires.proxy(wires.serve(policy), tmp_path / "run"), patience_s=5.0)
    for _ in range(2):
        there.reset("fold the towel")
        for step in range(2):
            there.act(observation(step))
    there.close()
    assert [one["steps"] for one in episodes(tmp_path / "run", 2)] == [2, 2]
    assert policy.episodes == 2


def test_vlawatch_clients_declare_their_action_space(wires: Wires, tmp_path: Path) -> None:
    from types import SimpleNamespace

    url = wires.proxy(wires.serve(Walker()), tmp_path / "run", declared=None)
    there = RemotePolicy(url, patience_s=5.0)
    space = SimpleNamespace(low=np.full(7, -0.5, np.float32), high=np.full(7, 0.5, np.float32))
    there.bind(SimpleNamespace(action_space=space, control_dt_s=0.25))
    there.reset("x")
    there.act(observation())
    there.close()
    assert len(episodes(tmp_path / "run", 1)) == 1
    header = RunFolder(tmp_path / "run").header
    assert header["env"]["action_low"] == [-0.5] * 7
    assert header["env"]["control_dt_s"] == 0.25


def test_without_an_action_space_frames_pass_and_the_log_says_so(
    wires: Wires, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = wires.proxy(wires.serve(Walker()), tmp_path / "run", declared=None)
    with connect(url, compression=None, proxy=None) as client:
        client.recv()
        for step in range(3):
            client.send(frame(step))
            assert "actions" in decode(client.recv())
    assert "--action-low" in caplog.text
    assert not (tmp_path / "run").exists()


def test_the_monitor_is_made_for_what_client_and_server_declare(wires: Wires) -> None:
    pytest.importorskip("typer")
    from monitor.cli.groups import MonitorOptions
    from monitor.cli.proxy import _monitor

    policy: Any = Walker()
    policy.translation_q99_m = (0.03, 0.04, 0.05)
    made: list[Monitor] = []

    def make(info: ClientEnvInfo, served: ServedPolicy) -> Monitor:
        made.append(_monitor(info, served, MonitorConfig(), MonitorOptions(), "robot", act=False))
        return made[-1]

    upstream = wires.serve(policy)
    run = ProxyRun(None, env_name="robot", url=upstream)
    service = ProxyService(Upstream(url=upstream), run, make)
    with Listener(service, FREE).background() as url:
        client = RemotePolicy(url, signals=[])
        client.bind(
            SimpleNamespace(
                action_space=SimpleNamespace(low=-np.ones(7), high=np.ones(7)),
                control_dt_s=0.5,
                robot=ROBOTS["google_robot"],
            )
        )
        client.reset("fold the towel")
        client.act(observation())
        client.close()
    config = made[0].config
    assert config.faults.unnorm_limits == (0.03, 0.04, 0.05)
    assert (config.robot.gripper.open, config.control_dt_s) == (-1.0, 0.5)
