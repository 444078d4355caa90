"""Addresses that cannot be listened on are said with what to do."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from monitor.errors import ConfigError
from policies.wire.address import Listen


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield int(other.getsockname()[1])


def test_a_taken_port_is_named(taken: int) -> None:
    with pytest.raises(ConfigError, match=f"port {taken}: Address already in use; .*ss -ltnp"):
        Listen(port=taken).require_free()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1"])
def test_an_address_of_another_machine_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot listen on {host} port 0: .*127.0.0.1"):
        Listen(host=host, port=0, api_key="k").require_free()


def test_looking_takes_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = int(other.getsockname()[1])
    free = Listen(port=port)
    free.require_free()
    free.require_free()
