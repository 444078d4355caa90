"""``vlawatch proxy``: monitor an unmodified client and its policy server."""

from __future__ import annotations

import logging
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated

import typer

from monitor.cli import options
from monitor.cli.groups import MonitorOptions, with_groups
from monitor.cli.output import emit

if TYPE_CHECKING:
    from monitor.config import MonitorConfig
    from monitor.pipeline import Monitor
    from monitor.proxy.request import ClientEnvInfo, Split
    from monitor.proxy.service import ServedPolicy, Upstream

__all__ = ["proxy"]

log = logging.getLogger("vlawatch")


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Policy server behind the proxy."""

    upstream: Annotated[
        str, typer.Option("--upstream", help="Policy server to forward to: ws://HOST:PORT.")
    ]
    upstream_api_key_env: Annotated[
        str | None,
        typer.Option(
            "--upstream-api-key-env",
            help="Environment variable that holds the server's API key. Default: the client's own "
            "key is forwarded.",
        ),
    ] = None
    max_message_mib: options.MaxMessage = 64

    def server(self) -> Upstream:
        """Return the server.

        Raises:
            ConfigError: the URL or the key cannot be read.
        """
        from monitor.proxy.service import Upstream
        from policies.wire.address import check_url, read_key

        name = self.upstream_api_key_env
        return Upstream(
            url=check_url(self.upstream),
            api_key=None if name is None else read_key(name),
            max_message_bytes=self.max_message_mib * 2**20,
        )


@dataclass(frozen=True, kw_only=True)
class ClientOptions:
    """Environment of the clients, as far as they do not declare it."""

    env: Annotated[
        str, typer.Option("--env", help="Environment name, for the trace and the calibration.")
    ] = "robot"
    action_low: Annotated[
        str | None,
        typer.Option(
            "--action-low",
            help="Smallest action, comma-separated. Default: as the client declares it.",
        ),
    ] = None
    action_high: Annotated[
        str | None, typer.Option("--action-high", help="Largest action, comma-separated.")
    ] = None
    control_dt_s: Annotated[
        float | None, typer.Option("--control-dt-s", help="Control period in seconds.")
    ] = None

    def declared(self) -> ClientEnvInfo | None:
        """Return the action space of the options; None leaves it to the clients.

        Raises:
            ConfigError: the ends are not two lists of as many numbers, in order.
        """
        from monitor.errors import ConfigError
        from monitor.proxy.request import ClientEnvInfo

        low, high = self.action_low, self.action_high
        if low is None and high is None:
            return None
        if low is None or high is None:
            msg = "--action-low and --action-high go together"
            raise ConfigError(msg)
        least, largest = _numbers(low, "--action-low"), _numbers(high, "--action-high")
        ordered = len(least) == len(largest) and all(
            a < b for a, b in zip(least, largest, strict=True)
        )
        if not ordered:
            msg = (
                "--action-low and --action-high need as many numbers each, every low below its "
                f"high; got {low!r} and {high!r}"
            )
            raise ConfigError(msg)
        return ClientEnvInfo(action_low=least, action_high=largest, control_dt_s=self.control_dt_s)


@dataclass(frozen=True, kw_only=True)
class SplitOptions:
    """What begins an episode."""

    split: Annotated[
        str,
        typer.Option(
            "--split",
            help="What begins an episode, in addition to a new connection: reset, prompt.",
        ),
    ] = "reset,prompt"
    split_idle_s: Annotated[
        float | None,
        typer.Option("--split-idle-s", help="Pause in seconds that begins an episode as well."),
    ] = None

    def rule(self) -> Split:
        """Return the rule.

        Raises:
            ConfigError: it names something else.
        """
        from monitor.proxy.request import Split

        names = tuple(name.strip() for name in self.split.split(",") if name.strip())
        return Split(on=names, idle_s=self.split_idle_s)


@with_groups
def proxy(
    server: ServerOptions,
    monitor: MonitorOptions,
    client: ClientOptions,
    split: SplitOptions,
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            help="HOST:PORT for clients; other than loopback it needs an API key.",
        ),
    ] = "127.0.0.1:9000",
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the run. Default: a new folder under runs/."),
    ] = None,
    act: Annotated[
        bool,
        typer.Option(
            "--act/--watch-only",
            help="Send the monitor's actions and stop on HALT, or forward frames unmodified.",
        ),
    ] = False,
    key: options.Keys = None,
    api_key_env: options.ApiKeyEnv = None,
) -> None:
    """Monitor every step between a client and a policy server of openpi's protocol.

    Neither needs a change: the client connects to `--listen` instead. Writes a run as `run` does.
    Prints the URL, then works until Ctrl-C.
    """
    from monitor.cli.serve import serve_until_interrupt
    from monitor.cli.session import one_thread
    from monitor.config import load_config
    from monitor.proxy.run import ProxyRun
    from monitor.proxy.service import ProxyService
    from monitor.study.summary import build_summary
    from policies.wire.address import Listen, read_key
    from policies.wire.keys import KeyMap
    from policies.wire.listener import Listener

    one_thread()
    where = Listen.parse(listen, api_key=read_key(api_key_env))
    upstream = server.server()
    config = load_config(monitor.monitor)
    declared = client.declared()
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    folder = out if out is not None else Path("runs") / f"{stamp}-proxy"
    run = ProxyRun(folder, env_name=client.env, url=upstream.url, summarise=build_summary)

    @cache
    def prototype(info: ClientEnvInfo, served: ServedPolicy) -> Monitor:
        return _monitor(info, served, config, monitor, client.env, act=act)

    service = ProxyService(
        upstream,
        run,
        lambda info, served: deepcopy(prototype(info, served)),
        declared=declared,
        keys=KeyMap.of(options.pairs(key, "--key")),
        split=split.rule(),
        acts=act,
    )
    listener = Listener(service, where, max_message_bytes=upstream.max_message_bytes)
    try:
        serve_until_interrupt(listener, f"{upstream.url} watched into {folder}")
    finally:
        run.close()
        emit(f"{run.episodes} episodes; trace: {folder}")


def _numbers(text: str, option: str) -> tuple[float, ...]:
    from monitor.errors import ConfigError

    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        msg = f"{option} {text!r}: expected comma-separated numbers, for example -1,-1,0"
        raise ConfigError(msg) from error


def _monitor(
    info: ClientEnvInfo,
    served: ServedPolicy,
    config: MonitorConfig,
    chosen: MonitorOptions,
    env_name: str,
    *,
    act: bool,
) -> Monitor:
    """Return a monitor for one episode of a client."""
    from envs.robot import ROBOTS
    from monitor.adapt import adapt_config
    from monitor.cli.session import find_calibration, with_switches
    from monitor.pipeline import Monitor

    env = SimpleNamespace(
        action_space=SimpleNamespace(low=info.action_low, high=info.action_high),
        control_dt_s=info.control_dt_s,
        robot=ROBOTS.get(info.robot or ""),
    )
    adapted = adapt_config(with_switches(config, enforce=act, recovery=True), env, served)
    fitted = find_calibration(adapted, chosen, policy_name=served.name, env_name=env_name)
    return Monitor(
        adapted, action_low=info.action_low, action_high=info.action_high, calibration=fitted
    )
