"""Names of policies and how to load them; nothing heavy is imported until one is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from monitor.errors import ConfigError, MissingExtraError, unknown_name
from monitor.plugins import load_target
from policies.base import Policy
from policies.openvla.prompt import TEMPLATE
from policies.options import Argument, arguments_of, build_options, check_names

__all__ = [
    "POLICIES",
    "PolicySpec",
    "check_arguments",
    "find_policy",
    "list_policies",
    "load_policy",
    "packaged_checkpoint",
]

ENTRY_POINT_GROUP: Final = "vlawatch.policies"
_OURS: Final = ("envs", "monitor", "policies")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """How a policy is loaded.

    Attributes:
        target: ``module:Class``. With ``options`` it is called with the options and ``name=``,
            otherwise with the arguments themselves.
        summary: one line for ``vlawatch policies``.
        extra: extra that installs its dependencies, or None.
        checkpoints: public names of checkpoints that it takes, the default one first.
        robots: allowed values of ``robot=``; empty if the actions are the simulator's already.
        signals: fields of :class:`policies.PolicyOutput` that it can fill in addition to
            ``action``, named as in :class:`monitor.Step`.
        options: ``module:Class`` of its options (:mod:`policies.options`), or None.
        defaults: options that differ from the defaults of the options class.
    """

    target: str
    summary: str
    extra: str | None = None
    checkpoints: tuple[str, ...] = ()
    robots: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
    options: str | None = None
    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def arguments(self) -> tuple[Argument, ...] | None:
        """Return the accepted arguments; None if that cannot be known here.

        Raises:
            ConfigError: if the target of another package does not exist.
        """
        try:
            found = arguments_of(load_target("policy", self.options or self.target))
        except ImportError:  # a missing extra, which load_policy reports
            return None
        return found


def packaged_checkpoint(name: str) -> Path:
    """Return the folder of the weights that come with the package.

    >>> packaged_checkpoint("pi0-mini").name
    'pi0_mini'
    """
    return Path(__file__).parent / name.replace("-", "_")


_SIMPLER_ROBOTS: Final = ("widowx", "google_robot")
_TOKENS: Final = ("token_logits", "token_ids")


POLICIES: Final[dict[str, PolicySpec]] = {
    "openvla": PolicySpec(
        target="policies.openvla.policy:OpenVLAPolicy",
        options="policies.openvla.options:OpenVLAOptions",
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
        signals=(*_TOKENS, "samples", "hidden", "normalized_action"),
    ),
    "openvla-mini": PolicySpec(
        target="policies.openvla.policy:OpenVLAPolicy",
        options="policies.openvla.options:OpenVLAOptions",
        defaults=MappingProxyType({"checkpoint": packaged_checkpoint("openvla-mini")}),
        summary="OpenVLA's architecture with 0.9 M parameters, trained for widowx-put-on",
        extra="vla",
        signals=(*_TOKENS, "samples", "hidden", "normalized_action"),
    ),
    "pi0": PolicySpec(
        target="policies.pi0.policy:PI0Policy",
        options="policies.pi0.options:PI0Options",
        summary="π0 from a checkpoint folder of LeRobot, openpi or transformers (checkpoint=DIR)",
        extra="vla",
        checkpoints=(
            "lerobot/pi0_base",
            "lerobot/pi0",
            "HaomingSong/lerobot-pi0-bridge",
            "HaomingSong/lerobot-pi0-fractal",
        ),
        robots=_SIMPLER_ROBOTS,
        signals=("samples", "chunk", "hidden", "extra", "normalized_action"),
    ),
    "pi0-mini": PolicySpec(
        target="policies.pi0.policy:PI0Policy",
        options="policies.pi0.options:PI0Options",
        defaults=MappingProxyType({"checkpoint": packaged_checkpoint("pi0-mini")}),
        summary="π0's kind with 1.1 M parameters, trained for widowx-put-on",
        extra="vla",
        signals=("samples", "chunk", "hidden", "extra", "normalized_action"),
    ),
    "spatialvla": PolicySpec(
        target="policies.spatialvla.policy:SpatialVLAPolicy",
        options="policies.spatialvla.options:SpatialVLAOptions",
        summary="SpatialVLA from a checkpoint folder (checkpoint=DIR): chunks of four actions",
        extra="vla",
        checkpoints=(
            "IPEC-COMMUNITY/spatialvla-4b-224-pt",
            "IPEC-COMMUNITY/spatialvla-4b-mix-224-pt",
            "IPEC-COMMUNITY/spatialvla-4b-224-sft-bridge",
            "IPEC-COMMUNITY/spatialvla-4b-224-sft-fractal",
        ),
        robots=_SIMPLER_ROBOTS,
        signals=(*_TOKENS, "samples", "chunk", "hidden", "normalized_action"),
    ),
    "spatialvla-mini": PolicySpec(
        target="policies.spatialvla.policy:SpatialVLAPolicy",
        options="policies.spatialvla.options:SpatialVLAOptions",
        defaults=MappingProxyType(
            {"checkpoint": packaged_checkpoint("spatialvla-mini"), "prompt": TEMPLATE}
        ),
        summary="SpatialVLA's kind with 1.1 M parameters, trained for widowx-put-on",
        extra="vla",
        signals=(*_TOKENS, "samples", "chunk", "hidden", "normalized_action"),
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
        signals=(*_TOKENS, "samples", "chunk", "hidden", "extra", "normalized_action"),
    ),
    "random": PolicySpec(target="policies.simple:RandomPolicy", summary="uniform random actions"),
    "hold": PolicySpec(target="policies.simple:HoldPolicy", summary="stands still, gripper open"),
}


def list_policies() -> dict[str, PolicySpec]:
    """Return every known policy: ours and those that other packages register.

    Another package adds one through the entry-point group ``vlawatch.policies``.
    """
    known = dict(POLICIES)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        summary = f"from {point.dist.name}" if point.dist else "from another package"
        known.setdefault(point.name, PolicySpec(target=point.value, summary=summary))
    return known


def find_policy(name: str) -> PolicySpec:
    """Return the policy of this name.

    Args:
        name: one of :func:`list_policies`, or a class as ``package.module:Class``.

    Raises:
        ConfigError: if the name is unknown, or there is no such class.
    """
    if ":" in name:
        try:
            load_target("policy", name)
        except ImportError as error:
            msg = f"policy {name!r} cannot be imported: {error}"
            raise MissingExtraError(msg) from error
        return PolicySpec(target=name, summary="named by its class")
    known = list_policies()
    if name not in known:
        raise ConfigError(unknown_name("policy", name, known))
    return known[name]


def load_policy(name: str, **kwargs: Any) -> Policy:
    """Load a policy by name.

    Args:
        name: one of :func:`list_policies`, or a class as ``package.module:Class``.
        **kwargs: arguments of the policy, for example ``checkpoint=`` of ``openvla``.

    Returns:
        The policy, ready for ``reset``.

    Raises:
        ConfigError: if no policy has this name or it does not accept these arguments.
        MissingExtraError: if a dependency is not installed; the text names the pip command.
    """
    spec = find_policy(name)
    if spec.options is not None:
        given = {**spec.defaults, **{k: v for k, v in kwargs.items() if not _unset(spec, k, v)}}
        options = build_options(name, load_target("policy", spec.options), given)
        return cast("Policy", _factory(name, spec)(options, name=name))
    factory = _factory(name, spec)
    try:
        return cast("Policy", factory(**kwargs))
    except TypeError as error:
        if "argument" not in str(error):
            raise
        check_arguments(name, kwargs)
        msg = f"policy {name!r}: {error}"
        raise ConfigError(msg) from error


def check_arguments(name: str, given: Iterable[str]) -> None:
    """Refuse arguments that a policy does not accept, before its model is imported.

    Args:
        name: as for :func:`load_policy`.
        given: names of arguments.

    Raises:
        ConfigError: with the nearest name, for the first that is not accepted.
    """
    accepted = find_policy(name).arguments()
    if accepted is not None:
        check_names(name, [one.name for one in accepted], given)


def _unset(spec: PolicySpec, name: str, value: Any) -> bool:
    return value is None and name in spec.defaults


def _factory(name: str, spec: PolicySpec) -> Any:
    try:
        return load_target("policy", spec.target)
    except ModuleNotFoundError as error:
        if spec.extra is None or (error.name or "").partition(".")[0] in _OURS:
            raise
        msg = f"policy {name!r} needs {error.name}: pip install 'vlawatch[{spec.extra}]'"
        raise MissingExtraError(msg) from error
