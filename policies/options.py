"""Typed options: what a policy accepts, known without importing its model."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from monitor.errors import ConfigError, unknown_name

__all__ = ["Argument", "arguments_of", "build_options", "check_names"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument that a policy accepts.

    Attributes:
        name: keyword.
        type: annotation as text, for example ``str | None``.
        default: default value; None if the argument is required.
        required: whether it must be given.
        description: what it is; empty where the policy does not say.
    """

    name: str
    type: str
    default: Any
    required: bool
    description: str


def arguments_of(target: Any) -> tuple[Argument, ...] | None:
    """Return the arguments of an options class, or of any other class or function.

    An options class is a dataclass whose fields are ``Annotated[type, "description"]``.

    Returns:
        None if the target accepts arbitrary keyword arguments, or if it cannot be inspected.

    >>> from policies.simple import RandomPolicy
    >>> [one.name for one in arguments_of(RandomPolicy)]
    ['seed', 'action_low', 'action_high']
    """
    if hasattr(target, "__dataclass_fields__"):
        hints = get_type_hints(target, include_extras=True)
        return tuple(
            _argument(one.name, hints[one.name], one.default is MISSING, one.default)
            for one in fields(target)
        )
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return None
    return tuple(
        _argument(one.name, one.annotation, one.default is one.empty, one.default)
        for one in parameters
    )


def check_names(policy: str, accepted: Iterable[str], given: Iterable[str]) -> None:
    """Refuse the first given name that is not accepted.

    Raises:
        ConfigError: naming the nearest accepted name.
    """
    accepted = tuple(accepted)
    for name in given:
        if name not in accepted:
            known = unknown_name("argument", name, accepted)
            msg = f"policy {policy!r}: {known if accepted else f'it takes none, got {name!r}'}"
            raise ConfigError(msg)


def build_options(policy: str, options: type[T], given: Mapping[str, Any]) -> T:
    """Return the options of a policy.

    Args:
        policy: registered name, for the error texts.
        options: options class of the policy.
        given: values by name.

    Raises:
        ConfigError: if a name is unknown, a required one is missing, or a value is out of range.
    """
    accepted = arguments_of(options) or ()
    check_names(policy, [one.name for one in accepted], given)
    for one in accepted:
        if one.required and one.name not in given:
            msg = f"policy {policy!r} needs {one.name}=: {one.description}"
            raise ConfigError(msg)
    return options(**given)


def _argument(name: str, hint: Any, required: bool, default: Any) -> Argument:
    description = ""
    if get_origin(hint) is Annotated:
        hint, description = get_args(hint)[:2]
    named = isinstance(hint, type) and get_origin(hint) is None
    text = hint.__name__ if named else str(hint).replace("typing.", "")
    return Argument(
        name=name,
        type=text,
        default=None if required else default,
        required=required,
        description=description,
    )
