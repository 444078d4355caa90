"""Find what a name stands for: shipped, installed by another package, or ``module:attribute``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from monitor.errors import ConfigError, unknown_name

__all__ = ["known_targets", "load_target", "resolve"]


def known_targets(group: str, shipped: Mapping[str, str]) -> dict[str, str]:
    """Return the ``module:attribute`` of every known name; shipped names win over installed ones.

    Args:
        group: entry-point group in which other packages offer theirs.
        shipped: ``module:attribute`` by name.
    """
    return {**{point.name: point.value for point in entry_points(group=group)}, **shipped}


def resolve(kind: str, name: str, group: str, shipped: Mapping[str, str]) -> Any:
    """Import what ``name`` stands for.

    Args:
        kind: what is being looked for, for the error texts, e.g. ``"metric"``.
        name: shipped name, entry-point name, or ``module:attribute``.
        group: entry-point group in which other packages offer theirs.
        shipped: ``module:attribute`` by shipped name.

    Returns:
        The class, function or object itself; it is not called.

    Raises:
        ConfigError: if the name is unknown, or its module or attribute does not exist.
        ImportError: if the module exists but something that it imports does not.

    >>> resolve("order", "natural", "no.such.group", {"natural": "operator:lt"}).__name__
    'lt'
    >>> resolve("order", "operator:gt", "no.such.group", {}).__name__
    'gt'
    """
    if ":" in name:
        return load_target(kind, name)
    known = known_targets(group, shipped)
    if name not in known:
        hint = "; or a class outright as package.module:Class"
        raise ConfigError(unknown_name(kind, name, known) + hint)
    return load_target(kind, known[name])


def load_target(kind: str, target: str) -> Any:
    """Import the attribute that a ``module:attribute`` names.

    Raises:
        ConfigError: if it is not of this form, or the module or attribute does not exist.
        ImportError: if the module exists but something that it imports does not.
    """
    path, _, attribute = target.partition(":")
    if not path or path.startswith(".") or not attribute:
        msg = f"{kind} {target!r} is not a class; expected package.module:Class"
        raise ConfigError(msg)
    try:
        found = module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if not f"{path}.".startswith(f"{error.name}."):
            raise
        msg = (
            f"{kind} {target!r}: this Python has no module {error.name!r}; put its folder on "
            "PYTHONPATH, or install the package that has it"
        )
        raise ConfigError(msg) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            public = [one for one, value in vars(module).items() if _defined_in(value, path)]
            raise ConfigError(unknown_name(f"{kind} of module {path}", attribute, public))
        found = getattr(found, part)
    return found


def _defined_in(value: object, module: str) -> bool:
    name = getattr(value, "__name__", "_")
    return getattr(value, "__module__", None) == module and not str(name).startswith("_")
