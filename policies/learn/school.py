"""Which policies can be taught here, and how a student of each begins."""

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
    from policies.learn.glimpses import Glimpses
    from policies.learn.student import Student

__all__ = ["STUDENTS", "StudentSpec", "new_student"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentSpec:
    """How one is made.

    Attributes:
        target: ``module:Class``, called with the demonstrations and a folder or None.
        horizon: actions of a plan.
        keeps_eyes: it learns from glimpses, which it gets as well.
    """

    target: str
    horizon: int = 1
    keeps_eyes: bool = False


STUDENTS: Final[Mapping[str, StudentSpec]] = MappingProxyType(
    {
        "openvla-mini": StudentSpec(target="policies.learn.openvla:OpenVLAStudent"),
        "spatialvla-mini": StudentSpec(
            target="policies.learn.spatialvla:SpatialVLAStudent", horizon=4, keeps_eyes=True
        ),
        "pi0-mini": StudentSpec(target="policies.learn.pi0:PI0Student", horizon=4, keeps_eyes=True),
    }
)
"""By the name that :func:`policies.load_policy` has for what comes out."""


def new_student(
    name: str,
    data: Demonstrations,
    init: Path | None,
    *,
    seed: int,
    glimpses: Glimpses | None = None,
) -> Student:
    """A student of this name; what it draws at random follows from the seed.

    Args:
        name: one of :data:`STUDENTS`.
        data: what it will learn from.
        init: checkpoint to go on from; None begins anew.
        seed: of new weights.
        glimpses: of the demonstrations, for one that keeps its eyes.

    Raises:
        ConfigError: if there is no such student, or it needs glimpses and has none of these frames.
    """
    if name not in STUDENTS:
        raise ConfigError(unknown_name("student", name, STUDENTS))
    spec = STUDENTS[name]
    module, _, attribute = spec.target.partition(":")
    make = getattr(importlib.import_module(module), attribute)
    import torch  # here alone, so that the names can be had without it

    torch.manual_seed(seed)
    if not spec.keeps_eyes:
        return cast("Student", make(data, init))
    if glimpses is None:
        msg = f"{name} learns from glimpses; make them with python -m policies.learn.glimpses"
        raise ConfigError(msg)
    if len(glimpses.tokens) != len(data):
        msg = (
            f"the glimpses are of {len(glimpses.tokens)} frames, the demonstrations have "
            f"{len(data)}; look again with python -m policies.learn.glimpses"
        )
        raise ConfigError(msg)
    return cast("Student", make(data, init, glimpses))
