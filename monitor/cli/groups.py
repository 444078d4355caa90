"""Groups of options: what belongs together is declared once, as a dataclass of options.

A command takes a group as one argument; :func:`with_groups` lays its options out for typer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, cast, get_type_hints

from monitor.cli import options

__all__ = [
    "EnvOptions",
    "MonitorOptions",
    "PolicyOptions",
    "ResumeOptions",
    "group_of",
    "with_groups",
]

Group = TypeVar("Group")


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """Policy that acts, and the arguments that it is loaded with."""

    policy: options.Policy = "openvla-mini"
    checkpoint: options.Checkpoint = None
    unnorm_key: options.UnnormKey = None
    device: options.Device = None
    dtype: options.Dtype = None
    url: options.Url = None
    policy_arg: options.PolicyArgs = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments that were given, those of ``--policy-arg`` included.

        Raises:
            ConfigError: a value of ``--policy-arg`` cannot be read.
        """
        from monitor.cli.session import policy_arguments

        named = ("checkpoint", "unnorm_key", "device", "dtype", "url")
        values = {name: getattr(self, name) for name in named}
        given = {name: value for name, value in values.items() if value is not None}
        return given | policy_arguments(self.policy_arg)

    def check(self) -> None:
        """Refuse a policy, checkpoint or argument that does not exist.

        Raises:
            ConfigError: one of them does not exist.
        """
        from monitor.cli.names import check_policy

        check_policy(self.policy, self.arguments)

    def check_env(self, env: Any) -> None:
        """Refuse an environment in which the policy cannot act.

        Raises:
            ConfigError: the policy is the scripted expert and the environment has none.
        """
        from monitor.cli.names import check_expert

        if self.policy == "expert":
            check_expert(env)

    def load(self) -> Any:
        """Load the policy.

        Raises:
            ConfigError: the policy does not take these arguments.
        """
        from monitor.cli.session import open_policy

        return open_policy(self.policy, self.arguments)


@dataclass(frozen=True, kw_only=True)
class EnvOptions:
    """Environment, and the process that it runs in."""

    env: options.Env = "widowx-put-on"
    env_python: options.EnvPython = None
    isolate: options.Isolate = False
    env_deadline_s: options.EnvDeadline = 60.0

    def check(self) -> None:
        """Refuse an environment that does not exist; another Python may know others.

        Raises:
            ConfigError: this Python is asked and knows none of this name.
        """
        from monitor.cli.names import check_env_name

        if self.env_python is None:
            check_env_name(self.env)

    def open(self) -> Any:
        """Make the environment, in its own process where the options say so."""
        from monitor.cli.session import EnvHost, open_env

        host = EnvHost.chosen(self.env_python, isolate=self.isolate, deadline_s=self.env_deadline_s)
        return open_env(self.env, host)


@dataclass(frozen=True, kw_only=True)
class MonitorOptions:
    """Configuration and calibration of the monitor."""

    monitor: options.MonitorFile = "default"
    calibration: options.CalibrationFile = None

    def check(self) -> None:
        """Refuse a configuration that does not exist or does not fit.

        Raises:
            ConfigError: it does not exist, or a key or value does not fit.
        """
        from monitor.config import load_config

        load_config(self.monitor)


@dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """Whether what was begun is continued."""

    resume: options.Resume = False
    retry_errors: options.RetryErrors = False


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for typer in which each group is laid out as its options.

    Args:
        command: takes groups (dataclasses of options) and other parameters, all by keyword.
    """
    hints = get_type_hints(command, include_extras=True)
    laid_out: list[Parameter] = []
    groups: dict[str, type[Any]] = {}
    for name, parameter in signature(command).parameters.items():
        if isinstance(kind := hints[name], type) and is_dataclass(kind):
            groups[name] = kind
            laid_out += _parameters(kind)
        else:
            laid_out.append(parameter.replace(annotation=kind, kind=Parameter.KEYWORD_ONLY))

    def call(**given: Any) -> None:
        made = {name: _taken(kind, given) for name, kind in groups.items()}
        command(**made, **given)

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    call.__signature__ = Signature(laid_out)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in laid_out}
    return call


def _parameters(group: type[Any]) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            one.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if one.default is MISSING else one.default,
            annotation=hints[one.name],
        )
        for one in fields(group)
    ]


def _taken(group: type[Any], given: dict[str, Any]) -> Any:
    """Return the group of its options in ``given``, which are removed there."""
    return group(**{one.name: given.pop(one.name) for one in fields(group)})


def group_of(group: type[Group], given: Mapping[str, Any]) -> Group:
    """Return a group with those of its options that are given; the others have their defaults."""
    known = {one.name for one in fields(cast("type[Any]", group))}
    return group(**{name: value for name, value in given.items() if name in known})
