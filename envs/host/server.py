"""The child's side: one environment, called by name until the other side is gone."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePath
from typing import Any, Final

from envs.host.channel import Channel, ChannelClosedError
from envs.host.facts import EXTRA_CALLS, changing_facts, facts_of, host_versions
from envs.registry import make_env

__all__ = ["CALLS", "serve"]


def serve(channel: Channel) -> None:
    """Answer calls until "close", or until the other side is gone.

    Whatever the environment raises is an answer like any other.
    """
    served = _Served()
    with suppress(ChannelClosedError):
        while True:
            name, arguments = channel.receive()
            if name == "close":
                served.close()
                return
            channel.send(_answer(served, name, arguments))


def _answer(served: _Served, name: str, arguments: dict[str, Any]) -> tuple[str, Any]:
    try:
        return "returned", CALLS[name](served, **arguments)
    except BaseException as error:  # also a simulator's sys.exit(): it is the answer
        return "raised", _told(error)


class _Served:
    """The environment, once it is made."""

    def __init__(self) -> None:
        self.env: Any = None

    def make(self, name: str, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Make it; its facts and the versions here."""
        self.env = make_env(name, **kwargs)
        return {"facts": facts_of(self.env), "versions": host_versions()}

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> dict[str, Any]:
        """Reset it; what it returned, and the facts that an episode may change."""
        returned = self.env.reset(seed=seed, options=options)
        return {"returned": returned, "facts": changing_facts(self.env)}

    def step(self, action: Any) -> Any:
        """Step it."""
        return self.env.step(action)

    def render(self) -> Any:
        """Render it."""
        return self.env.render()

    def extra(self, name: str, arguments: list[Any]) -> Any:
        """Call one of :data:`envs.host.facts.EXTRA_CALLS`."""
        if name not in EXTRA_CALLS:
            msg = (
                f"{name} may not be called from another process; allowed: {', '.join(EXTRA_CALLS)}"
            )
            raise AttributeError(msg)
        return EXTRA_CALLS[name](self.env, *arguments)

    def close(self) -> None:
        """Close it; an environment that fails at that is gone all the same."""
        with suppress(Exception):
            if self.env is not None:
                self.env.close()


CALLS: Final[dict[str, Callable[..., Any]]] = {
    "make": _Served.make,
    "reset": _Served.reset,
    "step": _Served.step,
    "render": _Served.render,
    "extra": _Served.extra,
}
"""What may be called, by name; everything else is out of reach."""


def _told(error: BaseException) -> dict[str, Any]:
    """An exception as plain values: class, text, traceback, place."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return {
        "kind": type(error).__name__,
        "bases": tuple(base.__name__ for base in type(error).__mro__),
        "text": str(error),
        "remote_traceback": "".join(
            traceback.format_exception(type(error), error, error.__traceback__)
        ),
        "place": place,
    }
