"""Who may connect: addresses to listen on, and the key that every other address needs."""

from __future__ import annotations

import errno
import hmac
import ipaddress
import os
from dataclasses import dataclass
from socket import AF_INET, AF_INET6, AddressFamily, create_server
from typing import Final
from urllib.parse import urlsplit

from monitor.errors import ConfigError

__all__ = ["API_KEY_ENV", "Listen", "authorization", "check_url", "is_loopback", "read_key"]

API_KEY_ENV: Final = "VLAWATCH_API_KEY"
"""Environment variable that holds the key where none is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Where a server listens and whom it answers.

    Attributes:
        host: name or address; anything but loopback needs a key.
        port: 0 takes a free one.
        api_key: what clients must send; None asks nothing.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    api_key: str | None = None

    def __post_init__(self) -> None:
        """Refuse to be open to a network without a key."""
        if not 0 <= self.port < 65536:
            msg = f"port {self.port} is none: 1 to 65535, or 0 for a free one"
            raise ConfigError(msg)
        if self.api_key is None and not is_loopback(self.host):
            msg = (
                f"{self.host} can be reached from other machines, so a key is needed: put one into "
                f"an environment variable and name it with --api-key-env ({API_KEY_ENV} is read by "
                "itself), or listen on 127.0.0.1"
            )
            raise ConfigError(msg)

    @classmethod
    def parse(cls, text: str, api_key: str | None = None) -> Listen:
        """Out of ``host:port``.

        >>> Listen.parse("127.0.0.1:9000").port
        9000

        Raises:
            ConfigError: if it is none, or needs a key.
        """
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isdecimal():
            msg = f"{text!r} is not an address; expected host:port, for example 127.0.0.1:9000"
            raise ConfigError(msg)
        return cls(host=host.strip("[]"), port=int(port), api_key=api_key)

    def require_free(self) -> None:
        """See that this can be listened on, before anything slow is started.

        Raises:
            ConfigError: if not; says why and what to do.
        """
        try:
            create_server((self.host, self.port), family=self.family).close()
        except OSError as error:
            # A negative number is not a system error but one of a name that cannot be resolved.
            number = error.errno or 0
            why = os.strerror(number) if number > 0 else error.strerror
            msg = f"cannot listen on {self.host} port {self.port}: {why}; {self._remedy(error)}"
            raise ConfigError(msg) from error

    @property
    def family(self) -> AddressFamily:
        """Address family of the socket."""
        return AF_INET6 if ":" in self.host else AF_INET

    def _remedy(self, error: OSError) -> str:
        if error.errno == errno.EADDRINUSE:
            return (
                f"`ss -ltnp 'sport = :{self.port}'` names the program that holds it; end that, or "
                "take another port (0 takes a free one)"
            )
        if error.errno == errno.EACCES:
            return "ports below 1024 are the system's; take another"
        return "give an address of this machine, for example 127.0.0.1"

    def admits(self, header: str | None) -> bool:
        """Whether a request with this ``Authorization`` header may come in; takes constant time."""
        if self.api_key is None:
            return True
        expected = authorization(self.api_key).encode()
        return hmac.compare_digest(expected, (header or "").encode("utf-8", "surrogateescape"))


def authorization(api_key: str) -> str:
    """The ``Authorization`` header of a key, as openpi's client sends it."""
    return f"Api-Key {api_key}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_key(variable: str | None) -> str | None:
    """The key in an environment variable.

    Args:
        variable: its name; None reads :data:`API_KEY_ENV`, where it is set.

    Raises:
        ConfigError: if a variable is named and holds nothing.
    """
    key = os.environ.get(variable or API_KEY_ENV, "").strip()
    if variable is not None and not key:
        msg = f"--api-key-env {variable}: the environment has no such variable, or it is empty"
        raise ConfigError(msg)
    return key or None


def check_url(url: str) -> str:
    """A server's URL, ``ws://`` in front where nothing is.

    >>> check_url("127.0.0.1:8000")
    'ws://127.0.0.1:8000'

    Raises:
        ConfigError: if it is not a websocket URL, or holds a password, which traces would show.
    """
    full = url if "://" in url else f"ws://{url}"
    try:
        parts = urlsplit(full)
        good = parts.scheme in ("ws", "wss") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.username or parts.password:
        msg = f"{url!r} is not a policy server; expected ws://host:port, for example ws://127.0.0.1:8000"
        raise ConfigError(msg)
    return full
