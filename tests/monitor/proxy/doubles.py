"""Policies, servers and frames for the tests of the proxy."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from websockets.sync.client import connect

from monitor import Monitor, MonitorConfig
from monitor.proxy.request import ClientEnvInfo
from monitor.proxy.run import ProxyRun
from monitor.proxy.service import ProxyService, Upstream
from monitor.trace import RunFolder
from policies import Observation, PolicyOutput
from policies.wire.address import Listen
from policies.wire.codec import encode
from policies.wire.listener import Listener
from policies.wire.server import PolicyService

CLIENT = ClientEnvInfo(action_low=(-1.0,) * 7, action_high=(1.0,) * 7, control_dt_s=0.2)
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
            lambda info, served: Monitor(
                config, action_low=info.action_low, action_high=info.action_high
            ),
            acts=acts,
            **{"declared": CLIENT, **given},
        )
        return self._stack.enter_context(Listener(service, listen).background())


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
