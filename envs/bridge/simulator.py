"""ManiSkill's twin with its traps undone: shared background images, fixed image size."""

from __future__ import annotations

import importlib
import logging
import warnings
from pathlib import Path
from typing import Any, Final

import mani_skill
import numpy as np
import torch
from numpy.typing import NDArray

from envs.bridge.tasks import BridgeTask
from envs.shaders import keep_shaders
from monitor.errors import ConfigError

__all__ = ["CAMERA", "make_simulator"]

CAMERA: Final = "3rd_view_camera"
_NATIVE: Final = (480, 640)
_INTRINSIC: Final = np.array([[623.588, 0.0, 319.501], [0.0, 623.588, 239.545], [0.0, 0.0, 1.0]])
"""Intrinsics of Bridge V2's camera (a Logitech C920) at its native size, as ManiSkill has it."""


def make_simulator(task: BridgeTask, image_size: tuple[int, int], folder: Path) -> Any:
    """ManiSkill's environment of a task, on the CPU's physics, one scene.

    Args:
        task: what to do.
        image_size: (height, width) of the image.
        folder: where the assets are.

    Raises:
        ConfigError: if ManiSkill was imported while it looked for assets elsewhere.
    """
    if Path(mani_skill.ASSET_DIR).resolve() != folder.resolve():
        msg = (
            f"MS_ASSET_DIR points to {folder.parent}, but mani_skill was imported before that and "
            f"reads {mani_skill.ASSET_DIR}; set MS_ASSET_DIR before Python starts"
        )
        raise ConfigError(msg)
    # Two hints about its own robot, at every reset.
    mani_skill.logger.setLevel(logging.ERROR)
    module, _, name = task.twin.partition(":")
    twin: Any = getattr(importlib.import_module(module), name)

    class Twin(twin):  # type: ignore[misc]
        """The twin with its own background image.

        Upstream keeps it in a dictionary of the class, where the environment that was made last
        overwrites the background of all others.
        """

        def __init__(self, **kwargs: Any) -> None:
            self._rgb_overlay_images: dict[str, Any] = {}
            self._objects_to_remove_from_greenscreen: list[Any] = []
            super().__init__(**kwargs)

    height, width = image_size
    camera = {"height": height, "width": width, "intrinsic": _scaled(_INTRINSIC, image_size)}
    with warnings.catch_warnings():
        # Upstream makes a tensor of a list of arrays, and torch says that this is slow.
        warnings.filterwarnings("ignore", "Creating a tensor from a list", UserWarning)
        sim = Twin(
            obs_mode="rgb+segmentation",
            render_mode=None,  # no second camera for people
            sim_backend="physx_cpu",
            render_backend="gpu" if torch.cuda.is_available() else "cpu",
            sensor_configs={CAMERA: camera},
        )
    keep_shaders(sim)
    return sim


def _scaled(intrinsic: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.float64]:
    """The same view in another number of pixels."""
    rows, columns = size[0] / _NATIVE[0], size[1] / _NATIVE[1]
    return np.diag([columns, rows, 1.0]) @ intrinsic
