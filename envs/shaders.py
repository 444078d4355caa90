"""Compiled shaders outlive the environment that needed them first."""

from __future__ import annotations

from typing import Any, Final

import sapien.render

__all__ = ["keep_shaders"]

_KEPT: Final[dict[str, Any]] = {}


def keep_shaders(env: Any) -> None:
    """Let SAPIEN keep the shaders that it compiled for a ManiSkill environment.

    It drops them with the last render system of a device; the next environment then compiles them
    again, for 12 s of CPU with a software renderer. An empty render system is enough to keep them.
    """
    device = env.scene.sub_scenes[0].render_system.device
    if str(device) not in _KEPT:
        _KEPT[str(device)] = sapien.render.RenderSystem(device)
