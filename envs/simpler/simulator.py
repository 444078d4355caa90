"""Making SimplerEnv's own environment without what its ``make`` does to the next one."""

from __future__ import annotations

import copy
import importlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from envs.simpler.tasks import SimplerTask
from monitor.errors import ConfigError, unknown_name

__all__ = ["SHADERS", "Settings", "check_names", "make_simulator", "use_shader"]

SHADERS: Final[dict[str, dict[str, Any]]] = {
    "ibl": {"camera_shader_dir": "ibl", "viewer_shader_dir": "ibl"},
    "rt": {
        "camera_shader_dir": "rt",
        "viewer_shader_dir": "rt",
        "rt_samples_per_pixel": 32,
        "rt_max_path_depth": 8,
        "rt_use_denoiser": True,
    },
}
"""Render settings by name: rasterised, or ray-traced as SimplerEnv packages its drawer tasks."""

_UNUSED_CAMERA: Final = "base_camera"
_SIM: Final = "mani_skill2_real2sim"
_GENERAL: Final = ("PutOnInSceneEnv", "MoveNearInSceneEnv")
"""Classes whose reset takes any objects, the more special one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Rendering options.

    Attributes:
        shader: a name of :data:`SHADERS`.
        image_size: (height, width) of the image; None for SimplerEnv's own.
        overlay: lay the real photograph over the background, as the published evaluation does.
    """

    shader: str = "ibl"
    image_size: tuple[int, int] | None = None
    overlay: bool = True

    def __post_init__(self) -> None:
        """Check what was given.

        Raises:
            ConfigError: if the shader is not known or the size is not two positive numbers.
        """
        if self.shader not in SHADERS:
            raise ConfigError(unknown_name("shader", self.shader, SHADERS))
        size = self.image_size
        if size is not None and (len(size) != 2 or min(size) < 16):
            msg = f"image_size must be (height, width) of at least 16, got {size!r}"
            raise ConfigError(msg)


def make_simulator(task: SimplerTask, settings: Settings) -> Any:
    """SimplerEnv's environment of a task, with its ready-made configuration.

    ``simpler_env.make`` writes its arguments into a table that all later calls share, and makes
    ``obs_mode`` a tuple; here the table is only read. Textures and cameras that no policy sees are
    not drawn.

    Raises:
        ModuleNotFoundError: if SimplerEnv is not importable here.
        ConfigError: if this SimplerEnv does not know the task.
    """
    table = importlib.import_module("simpler_env").ENVIRONMENT_MAP
    if task.name not in table:
        raise ConfigError(unknown_name("SimplerEnv task", task.name, table))
    uid, kwargs = table[task.name]
    spec = importlib.import_module(f"{_SIM}.utils.registration").REGISTERED_ENVS[uid]
    given = {**spec.default_kwargs, **kwargs, "obs_mode": "image", "prepackaged_config": True}
    given.pop("shader_dir", None)
    return _configured(spec.cls, task, settings)(**copy.deepcopy(given))


def _configured(environment: Any, task: SimplerTask, settings: Settings) -> Any:
    """The class with other rendering options; its ready-made configuration would overrule arguments."""

    class Configured(environment):  # type: ignore[misc]
        def _setup_prepackaged_env_init_config(self) -> dict[str, Any]:
            config = dict(super()._setup_prepackaged_env_init_config())
            robot = self.SUPPORTED_ROBOTS[config["robot"]].get_default_config()
            config["camera_cfgs"] = {
                "texture_names": ("Color",),
                "add_segmentation": True,
                _UNUSED_CAMERA: {"width": 4, "height": 4},
                task.camera: _camera(robot.cameras, settings.image_size),
            }
            config["shader_dir"] = settings.shader
            if not settings.overlay:
                config["rgb_overlay_path"] = None
            return config

        def _additional_prepackaged_config_reset(self, options: dict[str, Any]) -> Any:
            rebuild = super()._additional_prepackaged_config_reset(options)
            if not settings.overlay:  # a drawer's photograph belongs to the position of the robot
                self.rgb_overlay_img = None
            return rebuild

        def reset_with_layout(self, seed: int, options: dict[str, Any]) -> Any:
            """Begin with the objects of the options, which the task's own reset overrules."""
            found = (c for c in type(self).__mro__ if c.__name__ in _GENERAL)
            general: Any = next(found, type(self))
            return general.reset(self, seed=seed, options=options)

    Configured.__name__ = environment.__name__
    return Configured


def _camera(cameras: Any, image_size: tuple[int, int] | None) -> dict[str, Any]:
    """Changes to a camera for another size of the same view."""
    if image_size is None:
        return {}
    one = cameras[0] if isinstance(cameras, (list, tuple)) else cameras
    height, width = image_size
    scale = np.array([[width / one.width], [height / one.height], [1.0]])
    return {"width": width, "height": height, "intrinsic": np.asarray(one.intrinsic) * scale}


def use_shader(settings: Settings) -> None:
    """Choose the shader of cameras made from now on; SAPIEN keeps one choice for the process."""
    config = importlib.import_module(f"{_SIM}.envs.sapien_env").sapien.render_config
    for name, value in SHADERS[settings.shader].items():
        setattr(config, name, value)


def check_names(known: Any, ours: Any) -> tuple[str, ...]:
    """Tasks of SimplerEnv that we do not know, and ours that it does not; empty if all agree."""
    return tuple(sorted(set(known) ^ set(ours)))
