"""``vlawatch proxy``: monitor an unmodified client and its policy server."""

from __future__ import annotations

import logging
from copy import deepcopy
from datetime import datetime
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated

import typer

from monitor.cli import options
from monitor.cli.output import emit

if TYPE_CHECKING:
    from monitor.config import MonitorConfig
    from monitor.pipeline import Monitor
    from monitor.proxy.request import ClientEnvInfo
    from monitor.proxy.service import ServedPolicy

__all__ = ["proxy"]

log = logging.getLogger("vlawatch")


def proxy(
    upstream: Annotated[
        str, typer.Option("--upstream", help="Policy server to pass to, ws://HOST:PORT.")
    ],
    listen: Annotated[
        str,
        typer.Option("--listen", help="HOST:PORT for clients; any but loopback needs an API key."),
    ] = "127.0.0.1:9000",
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the run; by default a new one under runs/."),
    ] = None,
    monitor: options.MonitorFile = "default",
    calibration: options.CalibrationFile = None,
    env: Annotated[
        str, typer.Option("--env", help="Name of the environment, for trace and calibration.")
    ] = "robot",
    action_low: Annotated[
        str | None,
        typer.Option(
            "--action-low", help="Least action, comma-separated; clients of vlawatch tell theirs."
        ),
    ] = None,
    action_high: Annotated[
        str | None, typer.Option("--action-high", help="Largest action, comma-separated.")
    ] = None,
    control_dt_s: Annotated[
        float | None, typer.Option("--control-dt-s", help="Seconds of a control step.")
    ] = None,
    act: Annotated[
        bool,
        typer.Option(
            "--act/--watch-only",
            help="Send the monitor's actions and stop on HALT; else frames pass unmodified.",
        ),
    ] = False,
    split: Annotated[
        str,
        typer.Option(
            "--split", help="What begins an episode beside a new connection: reset, prompt."
        ),
    ] = "reset,prompt",
    split_idle_s: Annotated[
        float | None,
        typer.Option("--split-idle-s", help="A pause this long begins an episode too."),
    ] = None,
    key: options.Keys = None,
    api_key_env: options.ApiKeyEnv = None,
    upstream_api_key_env: Annotated[
        str | None,
        typer.Option(
            "--upstream-api-key-env",
            help="Variable with the server's key; by default the client's own is passed on.",
        ),
    ] = None,
    max_message_mib: options.MaxMessage = 64,
) -> None:
    """Monitor every step between a client and a policy server of openpi's protocol.

    Neither needs a change: the client connects to `--listen` instead. Writes a run as `run` does. Prints the URL, then works until Ctrl-C.
    """
    from monitor.cli.serve import serve_until_interrupt
    from monitor.cli.session import one_thread
    from monitor.config import load_config
    from monitor.proxy.request import Split
    from monitor.proxy.run import ProxyRun
    from monitor.proxy.service import ProxyService, Upstream
    from monitor.study.summary import build_summary
    from policies.wire.address import Listen, check_url, read_key
    from policies.wire.keys import KeyMap
    from policies.wire.listener import Listener

    one_thread()
    where = Listen.parse(listen, api_key=read_key(api_key_env))
    server = Upstream(
        url=check_url(upstream),
        api_key=None if upstream_api_key_env is None else read_key(upstream_api_key_env),
        max_message_bytes=max_message_mib * 2**20,
    )
    settings = load_config(monitor)
    declared = _declared(action_low, action_high, control_dt_s)
    names = tuple(name.strip() for name in split.split(",") if name.strip())
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    folder = out if out is not None else Path("runs") / f"{stamp}-proxy"
    run = ProxyRun(folder, env_name=env, url=server.url, summarise=build_summary)

    @cache
    def prototype(info: ClientEnvInfo, served: ServedPolicy) -> Monitor:
        return _monitor(info, served, settings, monitor, calibration, env, act=act)

    service = ProxyService(
        server,
        run,
        lambda info, served: deepcopy(prototype(info, served)),
        declared=declared,
        keys=KeyMap.of(options.pairs(key, "--key")),
        split=Split(on=names, idle_s=split_idle_s),
        acts=act,
    )
    listener = Listener(service, where, max_message_bytes=max_message_mib * 2**20)
    try:
        serve_until_interrupt(listener, f"{server.url} watched into {folder}")
    finally:
        run.close()
        emit(f"{run.episodes} episodes; trace: {folder}")


def _declared(
    low: str | None, high: str | None, control_dt_s: float | None
) -> ClientEnvInfo | None:
    """Return the environment given by options; None if it is left to the clients."""
    from monitor.errors import ConfigError
    from monitor.proxy.request import ClientEnvInfo

    if low is None and high is None:
        return None
    if low is None or high is None:
        msg = "--action-low and --action-high go together"
        raise ConfigError(msg)
    least, largest = _numbers(low, "--action-low"), _numbers(high, "--action-high")
    if len(least) != len(largest) or not all(a < b for a, b in zip(least, largest, strict=True)):
        msg = (
            "--action-low and --action-high need as many numbers each, every low below its high; "
            f"got {low!r} and {high!r}"
        )
        raise ConfigError(msg)
    return ClientEnvInfo(
        action_low=least,
        action_high=largest,
        control_dt_s=control_dt_s,
    )


def _numbers(text: str, option: str) -> tuple[float, ...]:
    from monitor.errors import ConfigError

    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        msg = f"{option} {text!r}: expected numbers with commas between, for example -1,-1,0"
        raise ConfigError(msg) from error


def _monitor(
    info: ClientEnvInfo,
    served: ServedPolicy,
    settings: MonitorConfig,
    source: str,
    calibration: Path | None,
    env_name: str,
    *,
    act: bool,
) -> Monitor:
    """Make the monitor for one episode of a client."""
    from envs.robot import ROBOTS
    from monitor.adapt import adapt_config
    from monitor.cli.session import find_calibration, with_switches
    from monitor.pipeline import Monitor

    env = SimpleNamespace(
        action_space=SimpleNamespace(low=info.action_low, high=info.action_high),
        control_dt_s=info.control_dt_s,
        robot=ROBOTS.get(info.robot or ""),
    )
    config = adapt_config(with_switches(settings, enforce=act, recovery=True), env, served)
    fitted = find_calibration(
        config,
        source=source,
        given=calibration,
        policy_name=served.name,
        env_name=env_name,
        task=None,
    )
    return Monitor(
        config, action_low=info.action_low, action_high=info.action_high, calibration=fitted
    )
