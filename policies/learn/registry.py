"""Registry of trainable mini policies."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from monitor.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from policies.learn.dataset import Demonstrations
    from policies.learn.feature_cache import FeatureCache
    from policies.learn.trainable import Trainable

__all__ = ["TRAINABLES", "TrainableSpec", "new_trainable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainableSpec:
    """How one is made.

    Attributes:
        target: ``module:Class``, called with the demonstrations and a folder or None.
        horizon: actions of a plan.
        frozen_vision: whether it is trained on precomputed vision features.
    """

    target: str
    horizon: int = 1
    frozen_vision: bool = False


TRAINABLES: Final[Mapping[str, TrainableSpec]] = MappingProxyType(
    {
        "openvla-mini": TrainableSpec(target="policies.learn.openvla:TrainableOpenVLA"),
        "spatialvla-mini": TrainableSpec(
            target="policies.learn.spatialvla:TrainableSpatialVLA", horizon=4, frozen_vision=True
        ),
        "pi0-mini": TrainableSpec(
            target="policies.learn.pi0:TrainablePI0", horizon=4, frozen_vision=True
        ),
    }
)
"""Trainable policies by the name with which :func:`policies.load_policy` loads the result."""


def new_trainable(
    name: str,
    data: Demonstrations,
    init: Path | None,
    *,
    seed: int,
    features: FeatureCache | None = None,
) -> Trainable:
    """Return a new trainable policy.

    Args:
        name: one of :data:`TRAINABLES`.
        data: what it will learn from.
        init: checkpoint to go on from; None starts from scratch.
        seed: random seed of new weights.
        features: vision features of the demonstrations, for a policy with a frozen encoder.

    Raises:
        ConfigError: if the name is unknown, or features are needed and missing or of other frames.
    """
    if name not in TRAINABLES:
        raise ConfigError(unknown_name("trainable policy", name, TRAINABLES))
    spec = TRAINABLES[name]
    module, _, attribute = spec.target.partition(":")
    make = getattr(importlib.import_module(module), attribute)
    import torch  # here alone, so that the names can be had without it

    torch.manual_seed(seed)
    if not spec.frozen_vision:
        return cast("Trainable", make(data, init))
    if features is None:
        msg = (
            f"{name} is trained on vision features; compute them with "
            "python -m policies.learn.feature_cache"
        )
        raise ConfigError(msg)
    if len(features.tokens) != len(data):
        msg = (
            f"the features cover {len(features.tokens)} frames, the demonstrations have "
            f"{len(data)}; compute them again with python -m policies.learn.feature_cache"
        )
        raise ConfigError(msg)
    return cast("Trainable", make(data, init, features))
