"""``vlawatch serve-policy``: a policy for other processes and machines."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from monitor.cli import options
from monitor.cli.groups import PolicyOptions, with_groups
from monitor.cli.output import emit

if TYPE_CHECKING:
    from policies.wire.listener import Listener

__all__ = ["serve_policy", "serve_until_interrupt"]

log = logging.getLogger("vlawatch")


@with_groups
def serve_policy(
    policy: PolicyOptions,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Address to listen on; other than loopback it needs an API key."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8000,
    api_key_env: options.ApiKeyEnv = None,
    clients: Annotated[
        int,
        typer.Option(
            "--clients", min=1, help="Number of clients; each has its own instance of the policy."
        ),
    ] = 1,
    key: options.Keys = None,
    always: Annotated[
        list[str] | None,
        typer.Option(
            "--always", help="Signal to send without being asked, e.g. token_logits; repeatable."
        ),
    ] = None,
    max_message_mib: options.MaxMessage = 64,
) -> None:
    """Serve a policy over openpi's websocket protocol.

    Clients are `--policy remote --url ws://HOST:PORT` and any client of openpi. Prints the URL,
    then serves until Ctrl-C.
    """
    from monitor.cli.session import one_thread
    from monitor.errors import ConfigError, unknown_name
    from policies.wire.address import Listen, read_key
    from policies.wire.keys import KeyMap
    from policies.wire.listener import Listener
    from policies.wire.messages import SIGNALS
    from policies.wire.server import PolicyService

    one_thread()
    for name in always or ():
        if name not in SIGNALS:
            raise ConfigError(unknown_name("signal", name, SIGNALS))
    if policy.policy == "expert":
        msg = (
            "the expert reads the simulator's state, which is not sent over the wire; use "
            "`run --policy expert`"
        )
        raise ConfigError(msg)
    listen = Listen(host=host, port=port, api_key=read_key(api_key_env))
    listen.require_free()
    keys = KeyMap.of(options.pairs(key, "--key"))
    service = PolicyService(
        policy.load,
        keys=keys,
        clients=clients,
        always=always or (),
    )
    listener = Listener(service, listen, max_message_bytes=max_message_mib * 2**20)
    serve_until_interrupt(listener, policy.policy)


def serve_until_interrupt(listener: Listener, what: str) -> None:
    """Print the URL, for scripts to read, and serve until Ctrl-C."""
    with suppress(KeyboardInterrupt), listener.background() as url:
        emit(url)
        log.info("serving %s at %s until Ctrl-C", what, url)
        threading.Event().wait()
    log.info("ended")
