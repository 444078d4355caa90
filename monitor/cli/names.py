"""Checks of the names given to a command, before anything slow starts."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.expert import has_expert
from monitor.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from monitor.rollout import EpisodeSpec

__all__ = ["check_disturbance", "check_env_name", "check_expert", "check_policy", "check_scenes"]


def check_policy(name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a policy that cannot be loaded, before a simulator starts for nothing.

    Args:
        name: name of the policy.
        arguments: arguments of the policy.

    Raises:
        ConfigError: the policy or its checkpoint does not exist, it does not take one of the
            arguments, or it needs one that is missing.
    """
    from policies.registry import check_arguments, find_policy

    spec = find_policy(name)
    check_arguments(name, arguments)
    if name == "remote" and not arguments.get("url"):
        msg = "policy 'remote' needs --url ws://HOST:PORT, which `vlawatch serve-policy` prints"
        raise ConfigError(msg)
    folder, published = arguments.get("checkpoint"), spec.checkpoints
    if folder is None and published:
        msg = (
            f"policy {name!r} needs --checkpoint DIR; for example "
            f"`hf download {published[0]} --local-dir DIR`"
        )
        raise ConfigError(msg)
    if folder is not None and not Path(folder).is_dir():
        msg = f"--checkpoint {folder} is not a folder; give the folder that holds config.json"
        raise ConfigError(msg)


def check_env_name(name: str) -> None:
    """Refuse an environment that this Python does not know.

    Raises:
        ConfigError: there is none of this name, and it is not a ``package.module:Class`` either.
    """
    from envs import list_envs

    if ":" in name:
        _check_class(name)
    elif name not in list_envs():
        raise ConfigError(unknown_name("environment", name, list_envs()))


def _check_class(name: str) -> None:
    """Refuse a ``package.module:Class`` that does not exist."""
    module, _, attribute = name.partition(":")
    try:
        found = importlib.import_module(module)
    except ValueError as error:  # nothing before the colon
        msg = f"--env {name!r} is not a class; expected package.module:Class"
        raise ConfigError(msg) from error
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise
        msg = (
            f"--env {name!r}: this Python has no module {error.name!r}; put its folder on "
            "PYTHONPATH, or give the Python that has it with --env-python"
        )
        raise ConfigError(msg) from error
    if not callable(getattr(found, attribute, None)):
        classes = [
            one for one, value in vars(found).items() if getattr(value, "__module__", 0) == module
        ]
        raise ConfigError(unknown_name(f"class of module {module}", attribute, classes))


def check_scenes(env: Any, specs: Iterable[EpisodeSpec]) -> None:
    """Refuse scenes beyond the environment's last one; layouts from a file are not counted.

    Raises:
        ConfigError: the environment declares how many scenes it has, and one is beyond them.
    """
    count = getattr(env.unwrapped, "scene_count", None)
    if count is None:
        return
    own = [spec.scene for spec in specs if "layout" not in spec.options]
    if beyond := [scene for scene in own if scene >= count]:
        msg = f"scene {beyond[0]} does not exist; this environment has scenes 0 to {count - 1}"
        raise ConfigError(msg)


def check_expert(env: Any) -> None:
    """Refuse the scripted expert in an environment without one.

    Raises:
        ConfigError: the environment has none.
    """
    if not has_expert(env):
        msg = "this environment has no scripted expert; `vlawatch policies` lists other policies"
        raise ConfigError(msg)


def check_disturbance(env: Any, name: str) -> None:
    """Refuse a disturbance that the environment does not list.

    Raises:
        ConfigError: the environment lists its disturbances, and this is not one of them.
    """
    known = getattr(env.unwrapped, "disturbances", None)
    if known is not None and name not in known:
        raise ConfigError(unknown_name("disturbance", name, known))
