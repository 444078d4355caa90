from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
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

from envs.robot import ROBOTS
from monitor import Monitor, MonitorConfig
from monitor.errors import ConfigError
from monitor.proxy.request import EnvTold, Request, Split, read_request
from monitor.proxy.run import NO_VERDICT, ProxyRun
from monitor.proxy.service import ProxyService, Served, Upstream
from monitor.proxy.world import rewrite
from monitor.trace import RunFolder, RunWriter
from policies import Observation, PolicyOutput
from policies.wire.address import Listen
from policies.wire.client import RemoteError
from policies.wire.codec import decode, encode
from policies.wire.keys import KeyMap
from policies.wire.listener import Listener
from policies.wire.remote import RemotePolicy
from policies.wire.server import PolicyService

TOLD = EnvTold(action_low=(-1.0,) * 7, action_high=(1.0,) * 7, control_dt_s=0.2)
FREE = Listen(port=0)


class Walker:
    """Small moves; ``wrong`` maps a step to what is raised or done there."""

    name = "walker"
    signals: frozenset[str] = frozenset({"token_logits"})

    def __init__(self, wrong: dict[int, Any] | None = None, rows: int = 1) -> None:
        self.wrong = wrong or {}
        self.rows = rows
        self.step = 0
        self.episodes = 0

    def reset(self, instruction: str) -> None:
        self.step = 0
        self.episodes += 1

    def act(self, observation: Observation) -> PolicyOutput:
        step, self.step = self.step, self.step + 1
        wrong = self.wrong.get(step)
        if isinstance(wrong, BaseException):
            raise wrong
        if callable(wrong):
            wrong()
        rng = np.random.default_rng(step)
        chunk = rng.uniform(-0.1, 0.1, (self.rows, 7))
        if isinstance(wrong, float):
            chunk[0, 0] = wrong
        return PolicyOutput(
            action=chunk[0],
            chunk=chunk if self.rows > 1 else None,
            token_logits=(10.0 * np.eye(7, 16) + rng.standard_normal((7, 16))).astype(np.float32),
        )


class Wires:
    """Servers and proxies of a test."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def serve(self, policy: Any, **given: Any) -> str:
        listener = Listener(PolicyService(lambda: policy, **given), FREE)
        return self._stack.enter_context(listener.background())

    def proxy(
        self,
        upstream: str,
        out: Path | None = None,
        *,
        listen: Listen = FREE,
        key: str | None = None,
        acts: bool = False,
        **given: Any,
    ) -> str:
        run = ProxyRun(out, env_name="robot", url=upstream)
        self._stack.callback(run.close)
        config = MonitorConfig.model_validate({"controller": {"enforce": acts}})
        service = ProxyService(
            Upstream(url=upstream, api_key=key, timeout_s=5.0),
            run,
            lambda told, served: Monitor(
                config, action_low=told.action_low, action_high=told.action_high
            ),
            acts=acts,
            **{"told": TOLD, **given},
        )
        return self._stack.enter_context(Listener(service, listen).background())


@pytest.fixture
def wires() -> Iterator[Wires]:
    with ExitStack() as stack:
        yield Wires(stack)


def observation(seed: int = 0, prompt: str = "") -> Observation:
    rng = np.random.default_rng(seed)
    return Observation(
        image=rng.integers(0, 256, (16, 16, 3)).astype(np.uint8),
        instruction=prompt,
        tcp_position=rng.standard_normal(3),
    )


def frame(seed: int = 0, prompt: str = "fold the towel", **more: Any) -> bytes:
    return encode({"observation/image": observation(seed).image, "prompt": prompt, **more})


def episodes(out: Path, count: int) -> list[dict[str, Any]]:
    """Episodes in a folder once there are so many; the proxy ends one when its client has left."""
    for _ in range(200):
        if (out / "episodes.jsonl").exists():
            found = RunFolder(out).episodes()
            if len(found) >= count:
                return found
        time.sleep(0.02)
    return RunFolder(out).episodes()


class Recorded:
    """Sits between proxy and server and keeps the bytes of both directions."""

    def __init__(self, upstream: str) -> None:
        self.url = upstream
        self.frames: list[tuple[str, Any]] = []

    def trouble(self) -> str | None:
        return None

    def check(self, connection: Any, request: Any) -> None:
        return None

    def serve(self, connection: Any) -> None:
        with connect(self.url, compression=None, proxy=None) as upstream:
            first = upstream.recv()
            connection.send(first)
            for request in connection:
                self.frames.append(("request", request))
                upstream.send(request)
                reply = upstream.recv()
                self.frames.append(("reply", reply))
                connection.send(reply)


# ---- passing -------------------------------------------------------------------------------


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
        action_low=TOLD.action_low,
        action_high=TOLD.action_high,
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


def test_a_reset_of_our_client_begins_an_episode(wires: Wires, tmp_path: Path) -> None:
    policy = Walker()
    there = RemotePolicy(wires.proxy(wires.serve(policy), tmp_path / "run"), patience_s=5.0)
    for _ in range(2):
        there.reset("fold the towel")
        for step in range(2):
            there.act(observation(step))
    there.close()
    assert [one["steps"] for one in episodes(tmp_path / "run", 2)] == [2, 2]
    assert policy.episodes == 2


def test_clients_of_ours_tell_their_action_space(wires: Wires, tmp_path: Path) -> None:
    from types import SimpleNamespace

    url = wires.proxy(wires.serve(Walker()), tmp_path / "run", told=None)
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


def test_without_an_action_space_frames_pass_and_it_is_said(
    wires: Wires, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = wires.proxy(wires.serve(Walker()), tmp_path / "run", told=None)
    with connect(url, compression=None, proxy=None) as client:
        client.recv()
        for step in range(3):
            client.send(frame(step))
            assert "actions" in decode(client.recv())
    assert "--action-low" in caplog.text
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_read_passes_and_is_told(wires: Wires, tmp_path: Path) -> None:
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


def test_an_error_of_the_policy_passes_and_is_told(wires: Wires, tmp_path: Path) -> None:
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


def test_a_frame_that_nobody_asked_for_passes_and_is_stale(wires: Wires, tmp_path: Path) -> None:
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
    from types import SimpleNamespace

    url = wires.proxy(wires.serve(Walker()), tmp_path / "run", told=None)
    for high in (0.5, 0.6):
        there = RemotePolicy(url, patience_s=5.0)
        space = SimpleNamespace(low=np.full(7, -high), high=np.full(7, high))
        there.bind(SimpleNamespace(action_space=space))
        there.reset("x")
        there.act(observation())
        there.close()
        episodes(tmp_path / "run", 1)
    assert "a proxy of its own" in caplog.text


@pytest.mark.parametrize(("acts", "passed"), [(False, 4), (True, 1)])
def test_a_full_disk_stops_the_trace_and_no_robot_that_works(
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


# ---- acting --------------------------------------------------------------------------------


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


# ---- requests ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("split", "request_", "begins"),
    [
        (Split(), Request(frame=b"", instruction="a", came=5.0), False),
        (Split(), Request(frame=b"", instruction="b", came=5.0), True),
        (Split(), Request(frame=b"", instruction=None, came=5.0), False),
        (Split(), Request(frame=b"", instruction="a", resets=True, came=5.0), True),
        (Split(on=("reset",)), Request(frame=b"", instruction="b", came=5.0), False),
        (Split(on=("prompt",)), Request(frame=b"", resets=True, came=5.0), False),
        (Split(on=(), idle_s=0.5), Request(frame=b"", instruction="a", came=5.0), True),
        (Split(on=(), idle_s=2.0), Request(frame=b"", instruction="a", came=5.0), False),
    ],
)
def test_where_an_episode_begins(split: Split, request_: Request, begins: bool) -> None:
    assert split.before(request_, "a", 4.0) is begins


@pytest.mark.parametrize("given", [{"on": ("promt",)}, {"idle_s": 0.0}])
def test_a_split_that_is_none_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Split(**given)


@pytest.mark.parametrize(
    "message",
    [
        {"vlawatch/reset": 3},
        {"vlawatch/reset": {"instruction": 3, "env": []}},
        {"vlawatch/reset": {"env": {"action_low": np.array(["a"]), "action_high": np.ones(1)}}},
        {"prompt": [1], "vlawatch/seq": "x"},
        {"vlawatch/success": "yes", "vlawatch/goal_distance": float("nan")},
        {"observation/image": np.zeros(3)},
    ],
    ids=repr,
)
def test_a_strange_request_is_read_as_far_as_it_goes(message: dict[str, Any]) -> None:
    got = read_request(encode(message), KeyMap())
    assert got.instruction is None
    assert (got.env, got.success, got.goal_distance, got.number) == (None,) * 4


def test_the_monitor_is_made_for_what_client_and_server_tell(wires: Wires) -> None:
    pytest.importorskip("typer")
    from monitor.cli.proxy import _monitor

    policy: Any = Walker()
    policy.usual_translation = (0.03, 0.04, 0.05)
    made: list[Monitor] = []

    def make(told: EnvTold, served: Served) -> Monitor:
        made.append(_monitor(told, served, MonitorConfig(), "default", None, "robot", act=False))
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
