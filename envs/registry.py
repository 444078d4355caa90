"""Names of environments and how to make them; nothing heavy is imported until one is made."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Final

__all__ = ["ENVS", "EnvSpec", "list_envs", "make_env"]

ENTRY_POINT_GROUP: Final = "vlawatch.envs"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvSpec:
    """How an environment is made.

    Attributes:
        target: ``module:Class``.
        summary: one line for ``vlawatch envs``.
        extra: the extra that brings its simulator.
        kwargs: arguments that belong to the name.
    """

    target: str
    summary: str
    extra: str
    kwargs: tuple[tuple[str, Any], ...] = ()


ENVS: Final[dict[str, EnvSpec]] = {
    "widowx-put-on": EnvSpec(
        target="envs.widowx.put_on:WidowXPutOn",
        summary="WidowX-250s puts the named one of two objects on a plate (embedded, no download)",
        extra="sim",
    ),
}


def list_envs() -> dict[str, EnvSpec]:
    """Every known environment: ours and those that other packages register.

    Another package adds one through the entry-point group ``vlawatch.envs``; name and target are
    the entry point's own.
    """
    known = dict(ENVS)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        summary = f"from {point.dist.name}" if point.dist else "from another package"
        known.setdefault(point.name, EnvSpec(target=point.value, summary=summary, extra="sim"))
    return known


def _outright(name: str) -> dict[str, EnvSpec]:
    return {name: EnvSpec(target=name, summary="named by its class", extra="sim")}


def make_env(name: str, **kwargs: Any) -> Any:
    """Make an environment by name.

    Args:
        name: one of :func:`list_envs`, or a class outright as ``package.module:Class``.
        **kwargs: passed to the environment.

    Returns:
        A ``gymnasium.Env``.

    Raises:
        ValueError: if no environment has this name; the message says which come near.
        ModuleNotFoundError: if its simulator is not installed; the message names the pip command.
    """
    known = _outright(name) if ":" in name else list_envs()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        msg = f"unknown environment {name!r}{hint} Known: {', '.join(sorted(known))}"
        raise ValueError(msg)
    spec = known[name]
    module, _, attribute = spec.target.partition(":")
    try:
        factory = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        ours = (error.name or "").partition(".")[0] in ("", "envs", "monitor", "policies")
        if ours or spec.target == name:  # no extra of ours brings somebody else's class
            raise
        msg = f"environment {name!r} needs {error.name}: pip install 'vlawatch[{spec.extra}]'"
        raise ModuleNotFoundError(msg, name=error.name) from error
    return factory(**{**dict(spec.kwargs), **kwargs})
