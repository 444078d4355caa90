"""Names of policies and how to load them; nothing heavy is imported until one is loaded."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Final, cast

from monitor.errors import ConfigError, MissingExtraError, unknown_name
from policies.arguments import arguments_of
from policies.base import Policy

__all__ = ["POLICIES", "PolicySpec", "check_arguments", "list_policies", "load_policy"]

ENTRY_POINT_GROUP: Final = "vlawatch.policies"
_OURS: Final = ("envs", "monitor", "policies")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """How a policy is loaded.

    Attributes:
        target: ``module:Class``.
        summary: one line for ``vlawatch policies``.
        extra: the extra that brings what it needs, or None.
        checkpoints: public names of checkpoints that it takes, the usual one first.
        robots: that ``robot=`` names; empty where the actions are the simulator's own already.
        signals: what it can tell a monitor beside the action: logits, samples, chunk, hidden, and
            extra for scalars of its own.
    """

    target: str
    summary: str
    extra: str | None = None
    checkpoints: tuple[str, ...] = ()
    robots: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()


_SIMPLER_ROBOTS: Final = ("widowx", "google_robot")


POLICIES: Final[dict[str, PolicySpec]] = {
    "openvla": PolicySpec(
        target="policies.openvla.policy:OpenVLAPolicy",
        summary="OpenVLA from a checkpoint folder (checkpoint=DIR)",
        extra="vla",
        checkpoints=(
            "openvla/openvla-7b",
            "openvla/openvla-7b-finetuned-libero-spatial",
            "openvla/openvla-7b-finetuned-libero-object",
            "openvla/openvla-7b-finetuned-libero-goal",
            "openvla/openvla-7b-finetuned-libero-10",
            "openvla/openvla-v01-7b",
        ),
        robots=_SIMPLER_ROBOTS,
        signals=("logits", "samples", "hidden"),
    ),
    "openvla-mini": PolicySpec(
        target="policies.openvla.policy:openvla_mini",
        summary="OpenVLA's architecture with 0.9 M parameters, trained for widowx-put-on",
        extra="vla",
        signals=("logits", "samples", "hidden"),
    ),
    "pi0": PolicySpec(
        target="policies.pi0.policy:PI0Policy",
        summary="π0 from a checkpoint folder of LeRobot, openpi or transformers (checkpoint=DIR)",
        extra="vla",
        checkpoints=(
            "lerobot/pi0_base",
            "lerobot/pi0",
            "HaomingSong/lerobot-pi0-bridge",
            "HaomingSong/lerobot-pi0-fractal",
        ),
        robots=_SIMPLER_ROBOTS,
        signals=("samples", "chunk", "hidden", "extra"),
    ),
    "pi0-mini": PolicySpec(
        target="policies.pi0.policy:pi0_mini",
        summary="π0's kind with 1.1 M parameters, trained for widowx-put-on",
        extra="vla",
        signals=("samples", "chunk", "hidden", "extra"),
    ),
    "spatialvla": PolicySpec(
        target="policies.spatialvla.policy:SpatialVLAPolicy",
        summary="SpatialVLA from a checkpoint folder (checkpoint=DIR): chunks of four actions",
        extra="vla",
        checkpoints=(
            "IPEC-COMMUNITY/spatialvla-4b-224-pt",
            "IPEC-COMMUNITY/spatialvla-4b-mix-224-pt",
            "IPEC-COMMUNITY/spatialvla-4b-224-sft-bridge",
            "IPEC-COMMUNITY/spatialvla-4b-224-sft-fractal",
        ),
        robots=_SIMPLER_ROBOTS,
        signals=("logits", "samples", "chunk", "hidden"),
    ),
    "spatialvla-mini": PolicySpec(
        target="policies.spatialvla.policy:spatialvla_mini",
        summary="SpatialVLA's kind with 1.1 M parameters, trained for widowx-put-on",
        extra="vla",
        signals=("logits", "samples", "chunk", "hidden"),
    ),
    "expert": PolicySpec(
        target="policies.expert:ExpertPolicy",
        summary="scripted expert on the simulator's state (privileged)",
        extra="sim",
    ),
    "remote": PolicySpec(
        target="policies.wire.remote:RemotePolicy",
        summary="any policy behind a server of openpi's protocol (url=ws://HOST:PORT)",
        extra="serve",
        signals=("logits", "samples", "chunk", "hidden", "extra"),
    ),
    "random": PolicySpec(target="policies.simple:RandomPolicy", summary="uniform random actions"),
    "hold": PolicySpec(target="policies.simple:HoldPolicy", summary="stands still, gripper open"),
}


def list_policies() -> dict[str, PolicySpec]:
    """Every known policy: ours and those that other packages register.

    Another package adds one through the entry-point group ``vlawatch.policies``.
    """
    known = dict(POLICIES)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        summary = f"from {point.dist.name}" if point.dist else "from another package"
        known.setdefault(point.name, PolicySpec(target=point.value, summary=summary))
    return known


def load_policy(name: str, **kwargs: Any) -> Policy:
    """Load a policy by name.

    Args:
        name: one of :func:`list_policies`.
        **kwargs: passed to the policy, for example ``checkpoint=`` of ``openvla``.

    Returns:
        The policy, ready for ``reset``.

    Raises:
        ConfigError: if no policy has this name or it does not take these arguments.
        MissingExtraError: if what it needs is not installed; the text names the pip command.
    """
    known = list_policies()
    if name not in known:
        raise ConfigError(unknown_name("policy", name, known))
    spec = known[name]
    module, _, attribute = spec.target.partition(":")
    try:
        factory = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if spec.extra is None or (error.name or "").partition(".")[0] in _OURS:
            raise
        msg = f"policy {name!r} needs {error.name}: pip install 'vlawatch[{spec.extra}]'"
        raise MissingExtraError(msg) from error
    try:
        return cast("Policy", factory(**kwargs))
    except TypeError as error:
        if "argument" not in str(error):
            raise
        check_arguments(name, kwargs)
        msg = f"policy {name!r}: {error}"
        raise ConfigError(msg) from error


def check_arguments(name: str, given: Iterable[str]) -> None:
    """Refuse arguments that a policy does not take, before anything of it is imported.

    Args:
        name: one of :func:`list_policies`.
        given: names of arguments.

    Raises:
        ConfigError: with the nearest name, for the first that is not taken.
    """
    taken = arguments_of(list_policies()[name].target)
    for one in given:
        if taken is not None and one not in taken:
            text = unknown_name("argument", one, taken) if taken else f"it takes none, got {one!r}"
            msg = f"policy {name!r}: {text}"
            raise ConfigError(msg)
