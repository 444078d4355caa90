"""Whether two bodies of a ManiSkill scene touch."""

from __future__ import annotations

from typing import Any, Final

import torch

__all__ = ["touching"]

_TOUCH_FORCE_N: Final = 0.01


def touching(scene: Any, one: Any, two: Any) -> bool:
    """Whether two actors press on each other now."""
    force = scene.get_pairwise_contact_forces(one, two)
    return bool(torch.linalg.norm(force) > _TOUCH_FORCE_N)
