"""Names of environments and how to make them; nothing heavy is imported until one is made."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Final

from envs.bridge.tasks import TASKS as BRIDGE_TASKS
from envs.simpler.tasks import TASKS
from monitor.errors import unknown_name

__all__ = ["ENVS", "EnvSpec", "list_envs", "make_env"]

ENTRY_POINT_GROUP: Final = "vlawatch.envs"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvSpec:
    """How an environment is made.

    Attributes:
        target: ``module:Class``.
        summary: one line for ``vlawatch envs``.
        extra: the extra that brings its simulator; empty where none does.
        remedy: what to do where the simulator is missing and no extra brings it.
        kwargs: arguments that belong to the name.
        assets: ``module:function`` that is given ``kwargs`` and returns what files are missing, or
            None; for an environment whose meshes are downloaded apart from its simulator.
    """

    target: str
    summary: str
    extra: str
    remedy: str = ""
    kwargs: tuple[tuple[str, Any], ...] = ()
    assets: str = ""

    @property
    def needs(self) -> str:
        """What brings its simulator, in a few words."""
        return f"vlawatch[{self.extra}]" if self.extra else "its own simulator"

    def missing_assets(self) -> str | None:
        """Which files are missing and how to get them; None where nothing is known to be."""
        if not self.assets:
            return None
        module, _, attribute = self.assets.partition(":")
        found: str | None = getattr(importlib.import_module(module), attribute)(**dict(self.kwargs))
        return found


ENVS: Final[dict[str, EnvSpec]] = {
    "widowx-put-on": EnvSpec(
        target="envs.widowx.rig:put_on",
        summary="WidowX-250s puts the named one of two objects on a plate (embedded, no download)",
        extra="sim",
    ),
    "widowx-put-in": EnvSpec(
        target="envs.widowx.rig:put_in",
        summary="WidowX-250s puts the named one of two objects in a basket (embedded, no download)",
        extra="sim",
    ),
    "google-pick": EnvSpec(
        target="envs.google.rig:pick",
        summary="Google Robot lifts the named one of two objects (embedded, no download)",
        extra="sim",
    ),
    "google-move-near": EnvSpec(
        target="envs.google.rig:move_near",
        summary="Google Robot moves one of three objects near another (embedded, no download)",
        extra="sim",
    ),
    **{
        f"bridge/{task.name}": EnvSpec(
            target="envs.bridge.env:BridgeEnv",
            summary=f"ManiSkill 3's digital twin of Bridge V2: {task.summary}",
            extra="sim",
            kwargs=(("task", task.name),),
            assets="envs.bridge.assets:missing_assets",
        )
        for task in BRIDGE_TASKS.values()
    },
    **{
        f"simpler/{task.name}": EnvSpec(
            target="envs.simpler.env:SimplerTaskEnv",
            summary=f"the real SimplerEnv: {task.kind.value}, {task.robot.replace('_', ' ')}",
            extra="",
            remedy=(
                "SimplerEnv must be importable in this Python (docs/simpler.md); one that lives in "
                "another Python is reached with --env-python PATH"
            ),
            kwargs=(("task", task.name),),
        )
        for task in TASKS.values()
    },
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
        raise ValueError(unknown_name("environment", name, known))
    spec = known[name]
    module, _, attribute = spec.target.partition(":")
    try:
        factory = getattr(importlib.import_module(module), attribute)
        return factory(**{**dict(spec.kwargs), **kwargs})
    except ModuleNotFoundError as error:
        ours = (error.name or "").partition(".")[0] in ("", "envs", "monitor", "policies")
        if ours or spec.target == name:  # no extra of ours brings somebody else's class
            raise
        remedy = spec.remedy or f"pip install 'vlawatch[{spec.extra}]'"
        msg = f"environment {name!r} needs {error.name}: {remedy}"
        raise ModuleNotFoundError(msg, name=error.name) from error
