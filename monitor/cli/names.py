"""Names that a command was given: what does not exist is refused before anything slow starts."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.expert import has_expert
from monitor.cli.options import pairs
from monitor.config import load_config
from monitor.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from monitor.rollout import EpisodeSpec

__all__ = ["check_disturbance", "check_env_name", "check_expert", "check_names", "check_scenes"]


def check_names(
    policy: str,
    *,
    env: str | None = None,
    config: str = "default",
    checkpoint: str | None = None,
    further: list[str] | None = None,
    url: str | None = None,
) -> None:
    """Refuse what does not exist before a simulator starts for nothing.

    Args:
        policy: name.
        env: name of an environment of this Python; None checks none.
        config: of the monitor, name or file.
        checkpoint: folder, where one is given.
        further: arguments of the policy as ``NAME=VALUE``, which may hold the two others too.
        url: of a policy server, where one is given.

    Raises:
        ConfigError: if a name or folder does not exist, or the policy is nothing without it.
    """
    from policies import list_policies
    from policies.registry import check_arguments

    if env is not None:
        check_env_name(env)
    known = list_policies()
    if policy not in known:
        raise ConfigError(unknown_name("policy", policy, known))
    arguments = pairs(further, "--policy-arg")
    check_arguments(policy, arguments)
    if policy == "remote" and not (url or arguments.get("url")):
        msg = "policy 'remote' needs --url ws://HOST:PORT, which `vlawatch serve-policy` prints"
        raise ConfigError(msg)
    folder = checkpoint or arguments.get("checkpoint")
    published = known[policy].checkpoints
    if folder is None and published:
        msg = (
            f"policy {policy!r} needs --checkpoint DIR; for example "
            f"`hf download {published[0]} --local-dir DIR`"
        )
        raise ConfigError(msg)
    if folder is not None and not Path(folder).is_dir():
        msg = f"--checkpoint {folder} is not a folder; give the folder that holds config.json"
        raise ConfigError(msg)
    load_config(config)


def check_env_name(name: str) -> None:
    """Refuse an environment that this Python does not know.

    Raises:
        ConfigError: if there is none of this name, and no ``package.module:Class`` either.
    """
    from envs import list_envs

    if ":" in name:
        _check_class(name)
    elif name not in list_envs():
        raise ConfigError(unknown_name("environment", name, list_envs()))


def _check_class(name: str) -> None:
    """Refuse a ``package.module:Class`` that cannot be imported; what it needs itself may lack."""
    module, _, attribute = name.partition(":")
    try:
        found = importlib.import_module(module)
    except ValueError as error:  # nothing before the colon
        msg = f"--env {name!r} is no class; expected package.module:Class"
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
    """Refuse scenes beyond the environment's last one; a file of layouts has its own count.

    Raises:
        ConfigError: the environment says how many scenes it has, and one of these is none of them.
    """
    count = getattr(env.unwrapped, "scene_count", None)
    if count is None:
        return
    own = [spec.scene for spec in specs if "layout" not in spec.options]
    if beyond := [scene for scene in own if scene >= count]:
        msg = f"scene {beyond[0]} does not exist; this environment has scenes 0 to {count - 1}"
        raise ConfigError(msg)


def check_expert(env: Any) -> None:
    """Refuse the scripted expert where the environment has none.

    Raises:
        ConfigError: it has none.
    """
    if not has_expert(env):
        msg = "this environment has no scripted expert; `vlawatch policies` lists other policies"
        raise ConfigError(msg)


def check_disturbance(env: Any, name: str) -> None:
    """Refuse a disturbance that the environment says it does not have.

    Raises:
        ConfigError: the environment lists its disturbances and this is none of them.
    """
    known = getattr(env.unwrapped, "disturbances", None)
    if known is not None and name not in known:
        raise ConfigError(unknown_name("disturbance", name, known))
