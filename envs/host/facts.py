"""What the loop reads of an environment in addition to its calls, as plain values."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any, Final

from envs.expert import ask_expert, has_expert
from envs.host.spaces import plain_space, read_space
from envs.robot import GripperCommand, RobotSpec
from envs.tolerance import Tolerance

__all__ = ["EXTRA_CALLS", "changing_facts", "facts_of", "host_versions", "read_facts"]

MIRRORED: Final = (
    "control_dt_s",
    "disturbances",
    "horizon_steps",
    "metadata",
    "render_mode",
    "scene_count",
    "task",
)
"""Attributes of plain values; they are read again after every reset."""
SPACES: Final = ("action_space", "observation_space")
EXTRA_CALLS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "expert_action": ask_expert,
        "pixel_of": lambda env, position: env.unwrapped.pixel_of(position),
    }
)
"""Methods callable in another process in addition to gymnasium's; each takes the env first."""
_PACKAGES: Final = (
    "numpy",
    "gymnasium",
    "mani-skill",
    "mani_skill2_real2sim",
    "sapien",
    "simpler_env",
    "torch",
)


def changing_facts(env: Any) -> dict[str, Any]:
    """The mirrored attributes that an environment has now, of itself or of what it wraps."""
    found = {}
    for name in MIRRORED:
        for owner in (env, getattr(env, "unwrapped", env)):
            if hasattr(owner, name):
                found[name] = getattr(owner, name)
                break
    return found


def facts_of(env: Any) -> dict[str, Any]:
    """Everything that is mirrored of an environment."""
    facts = changing_facts(env)
    core = getattr(env, "unwrapped", env)
    robot = getattr(core, "robot", None)
    if isinstance(robot, RobotSpec):
        facts["robot"] = asdict(robot)
    if isinstance(tolerance := getattr(core, "tolerance", None), Tolerance):
        facts["tolerance"] = asdict(tolerance)
    offered = {"expert_action": has_expert(env), "pixel_of": hasattr(core, "pixel_of")}
    facts["extra_calls"] = tuple(name for name in EXTRA_CALLS if offered[name])
    for name in SPACES:
        if (space := getattr(env, name, None)) is not None:
            facts[name] = plain_space(space)
    return facts


def read_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes for the environment's stand-in, out of what crossed."""
    read = dict(facts)
    if "robot" in facts:
        robot = dict(facts["robot"])
        read["robot"] = RobotSpec(**{**robot, "gripper": GripperCommand(robot["gripper"])})
    if "tolerance" in facts:
        read["tolerance"] = Tolerance(**facts["tolerance"])
    for name in SPACES:
        if name in facts:
            read[name] = read_space(facts[name])
    return read


def host_versions() -> dict[str, str]:
    """Versions of this interpreter and of the simulator's packages in it."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
