"""Names on the wire: openpi's keys, which can be mapped, and ours next to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from monitor.errors import ConfigError, unknown_name
from monitor.signals import OBSERVED_SIGNALS, SIGNALS

__all__ = ["LAYOUT", "OURS", "PROTOCOL", "KeyMap", "find", "ours", "put"]

PROTOCOL: Final = 1
"""Version of our keys, declared by the server in its first frame."""
OURS: Final = "vlawatch/"
"""Prefix of every key that openpi does not have, so that other programs ignore it."""
LAYOUT: Final[Mapping[str, int | None]] = {
    name: size if isinstance(size, int) else None
    for name in OBSERVED_SIGNALS
    for size in (SIGNALS[name].shape or (1,))
    if name != "image"
}
"""What a state vector may be made of, with the count of numbers; None takes what is left."""


def ours(name: str) -> str:
    """Our key of this name.

    >>> ours("seq")
    'vlawatch/seq'
    """
    return OURS + name


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMap:
    """Under which key a server of openpi's protocol has what; the defaults are its examples'.

    A key with slashes is looked up whole and then as a path of nested maps, ``images/front`` in
    ``{"images": {"front": ...}}``.

    Attributes:
        image: RGB image, ``(H, W, 3)`` uint8.
        instruction: the sentence.
        state: vector of ``layout``.
        layout: what ``state`` is made of, names of :data:`LAYOUT` separated by commas. Empty by
            default: no state is sent, and none is read, before somebody said what is in it.
        tcp_position: metres, ``(3,)``; empty where it has no key of its own.
        tcp_quaternion: w, x, y, z; empty likewise.
        gripper: opening in [0, 1]; empty likewise.
        joint_positions: radians or metres; empty likewise.
        actions: actions in the reply, ``(H, D)``.
    """

    image: str = "observation/image"
    instruction: str = "prompt"
    state: str = "observation/state"
    layout: str = ""
    tcp_position: str = ""
    tcp_quaternion: str = ""
    gripper: str = ""
    joint_positions: str = ""
    actions: str = "actions"

    def __post_init__(self) -> None:
        """Refuse a layout that cannot be taken apart."""
        parts = self.parts
        for part in parts:
            if part not in LAYOUT:
                raise ConfigError(unknown_name("part of the state", part, LAYOUT))
        if any(LAYOUT[part] is None for part in parts[:-1]) or len(set(parts)) < len(parts):
            msg = f"layout {self.layout!r}: each part once, and joint_positions only at the end"
            raise ConfigError(msg)
        for name in ("image", "instruction", "actions"):
            if not getattr(self, name):
                msg = f"key {name!r} is empty; every server has one"
                raise ConfigError(msg)

    @property
    def parts(self) -> tuple[str, ...]:
        """What the state is made of."""
        return tuple(part.strip() for part in self.layout.split(",") if part.strip())

    @classmethod
    def of(cls, changes: Mapping[str, str] | None) -> KeyMap:
        """The defaults with some keys changed.

        >>> KeyMap.of({"image": "images/front"}).image
        'images/front'

        Raises:
            ConfigError: if a name is not known.
        """
        known = {field.name for field in fields(cls)}
        for name in changes or {}:
            if name not in known:
                raise ConfigError(unknown_name("key", name, known))
        return replace(cls(), **{name: str(key) for name, key in (changes or {}).items()})


def find(message: Mapping[Any, Any], key: str) -> Any:
    """Value under a key, whole or as a path; None where there is none.

    >>> find({"images": {"front": 1}}, "images/front")
    1
    """
    if not key:
        return None
    if key in message:
        return message[key]
    found: Any = message
    for part in key.split("/"):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def put(message: dict[Any, Any], key: str, value: Any) -> None:
    """Replace the value that :func:`find` finds under a key."""
    if key in message:
        message[key] = value
        return
    head, slash, rest = key.partition("/")
    if slash and isinstance(message.get(head), dict):
        put(message[head], rest, value)
