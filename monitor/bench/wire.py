"""Benchmark of a policy in another process, with and without the proxy."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, Final, final

import numpy as np

from monitor.bench.overhead import Timing, time_calls
from monitor.config import MonitorConfig
from monitor.pipeline import Monitor
from monitor.proxy.request import ClientEnvInfo
from monitor.proxy.run import ProxyRun
from monitor.proxy.service import ProxyService, ServedPolicy, Upstream
from policies import Observation, Policy, PolicyOutput
from policies.wire.address import Listen
from policies.wire.listener import Listener, Service
from policies.wire.remote import RemotePolicy
from policies.wire.server import PolicyService

__all__ = ["wire_table"]

IMAGE: Final = (224, 224, 3)
LOGITS: Final = (7, 32_064)
"""Shape of OpenVLA's logits: seven tokens over the whole vocabulary, 0.9 MB."""
_CLIENT: Final = ClientEnvInfo(action_low=(-1.0,) * 7, action_high=(1.0,) * 7, control_dt_s=0.2)


@final
class _Payload:
    """A policy that answers at once with as much data as OpenVLA."""

    name = "payload"
    signals = frozenset({"token_logits"})

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._output = PolicyOutput(
            action=rng.uniform(-0.1, 0.1, 7),
            token_logits=rng.standard_normal(LOGITS).astype(np.float32),
        )

    def reset(self, instruction: str) -> None:
        """Do nothing."""

    def act(self, observation: Observation) -> PolicyOutput:
        """Return the same output every time."""
        return self._output


def wire_table(calls: int = 300) -> list[Timing]:
    """Time ``act`` of a policy that takes no time: in process, over loopback, through the proxy.

    Args:
        calls: number of timed calls per row.
    """
    rng = np.random.default_rng(0)
    seen = Observation(image=rng.integers(0, 256, IMAGE).astype(np.uint8), instruction="x")
    with _separate(_serve_policy) as url, _separate(_serve_proxy, url) as between:
        rows = [_time("in this process", _Payload(), seen, calls)]
        for what, address in (("over loopback", url), ("through the proxy", between)):
            for signals, size in (([], "action only"), (["token_logits"], "with 7×32064 logits")):
                policy = RemotePolicy(address, signals=signals)
                rows.append(_time(f"{what}, {size}", policy, seen, calls))
                policy.close()
    return rows


def _time(what: str, policy: Policy, seen: Observation, calls: int) -> Timing:
    return time_calls(what, lambda _: policy.act(seen), calls=calls, each=lambda: policy.reset("x"))


@contextmanager
def _separate(serve: Any, *arguments: str) -> Iterator[str]:
    """Run a listener in a separate process; yield its URL."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, *arguments))
    process.start()
    try:
        yield str(ours.recv())
    finally:
        ours.send(None)
        process.join(10.0)
        process.kill()


def _serve_policy(pipe: Connection) -> None:
    _serve(PolicyService(_Payload), pipe)


def _serve_proxy(pipe: Connection, upstream: str) -> None:
    run = ProxyRun(None, env_name="bench", url=upstream)

    def make_monitor(info: ClientEnvInfo, served: ServedPolicy) -> Monitor:
        watching = MonitorConfig.model_validate({"controller": {"enforce": False}})
        return Monitor(watching, action_low=info.action_low, action_high=info.action_high)

    _serve(ProxyService(Upstream(url=upstream), run, make_monitor, declared=_CLIENT), pipe)


def _serve(service: Service, pipe: Connection) -> None:
    with Listener(service, Listen(port=0)).background() as url:
        pipe.send(url)
        pipe.recv()
