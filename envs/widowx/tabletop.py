"""The ManiSkill scene: table, plate, objects, lights and two cameras around the WidowX."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import sapien
import sapien.render
import torch
from mani_skill.envs.sapien_env import BaseEnv
from mani_skill.sensors.camera import CameraConfig
from mani_skill.utils import sapien_utils
from mani_skill.utils.structs.types import SimConfig
from numpy.typing import NDArray

from envs.widowx.agent import BASE_POSE, HOME_QPOS, WidowX250S
from envs.widowx.scene import SHAPES, Placement, Scene, make_scene

__all__ = [
    "CAMERAS",
    "CONTROL_FREQ_HZ",
    "PLATE_HALF_HEIGHT_M",
    "PLATE_RADIUS_M",
    "Tabletop",
]

CONTROL_FREQ_HZ: Final = 5
PHYSICS_FREQ_HZ: Final = 500
PLATE_RADIUS_M: Final = 0.06
PLATE_HALF_HEIGHT_M: Final = 0.004
_AMBIENT: Final = (0.3, 0.3, 0.3)
_LIGHTS: Final = (
    ((0.6, 0.3, -1.0), (1.1, 1.1, 1.1)),
    ((-0.4, -0.5, -1.0), (0.5, 0.5, 0.5)),
)
"""Direction and linear RGB of each lamp."""
# sapien's cylinders lie along x; this turn stands them up.
_UPRIGHT: Final = sapien.Pose(q=[0.70710678, 0.0, 0.70710678, 0.0])


def _front_camera(size: tuple[int, int]) -> CameraConfig:
    """A camera that faces the robot: both fingers and the table fill the picture."""
    height, width = size
    pose = sapien_utils.look_at([-0.62, 0.0, 1.25], [-0.13, 0.005, 0.905])
    return CameraConfig("front", pose=pose, width=width, height=height, fov=0.56, near=0.01, far=10)


def _bridge_camera(size: tuple[int, int]) -> CameraConfig:
    """The over-the-shoulder camera of Bridge V2 as SimplerEnv places it."""
    height, width = size
    pose = BASE_POSE * sapien.Pose(
        [0.0, -0.16, 0.36], [0.8992917, -0.09263245, 0.35892478, 0.23209205]
    )
    fov = 2 * float(np.arctan(240 / 623.588))
    return CameraConfig("bridge", pose=pose, width=width, height=height, fov=fov, near=0.01, far=10)


CAMERAS: Final = {"front": _front_camera, "bridge": _bridge_camera}
"""Cameras a policy may look through, by name: size (height, width) to a camera."""


class Tabletop(BaseEnv):  # type: ignore[misc]
    """One arm, one plate and the two objects of a scene, built anew at every reset.

    Pass ``options={"table_scene": scene, "reconfigure": True}`` to ``reset``.
    """

    SUPPORTED_ROBOTS = [WidowX250S.uid]  # noqa: RUF012 - ManiSkill reads a class attribute
    SUPPORTED_REWARD_MODES = ["none"]  # noqa: RUF012

    def __init__(
        self,
        *,
        camera: str,
        image_size: tuple[int, int],
        render_size: tuple[int, int],
        **kwargs: Any,
    ) -> None:
        self._camera = camera
        self._image_size = image_size
        self._render_size = render_size
        super().__init__(
            robot_uids=WidowX250S.uid,
            reward_mode="none",
            sim_backend="physx_cpu",
            render_backend="gpu" if torch.cuda.is_available() else "cpu",
            **kwargs,
        )

    @property
    def _default_sim_config(self) -> SimConfig:
        return SimConfig(sim_freq=PHYSICS_FREQ_HZ, control_freq=CONTROL_FREQ_HZ)

    @property
    def _default_sensor_configs(self) -> list[CameraConfig]:
        return [CAMERAS[self._camera](self._image_size)]

    @property
    def _default_human_render_camera_configs(self) -> CameraConfig:
        height, width = self._render_size
        pose = sapien_utils.look_at([-0.62, -0.44, 1.42], [-0.04, 0.0, 0.97])
        return CameraConfig("render", pose=pose, width=width, height=height, fov=0.75)

    def _load_agent(self, options: dict[str, Any]) -> None:
        super()._load_agent(options, BASE_POSE)

    def _load_lighting(self, options: dict[str, Any]) -> None:
        self.set_light(np.ones(3))
        for direction, colour in _LIGHTS:
            self.scene.add_directional_light(list(direction), list(colour), shadow=False)

    def set_light(self, factor: NDArray[np.float64]) -> None:
        """Scale every light's red, green and blue, ``factor`` of shape ``(3,)``."""
        self.scene.set_ambient_light((np.asarray(_AMBIENT) * factor).tolist())
        for system in self.scene.sub_scenes:
            lights = [
                component
                for entity in system.entities
                for component in entity.components
                if isinstance(component, sapien.render.RenderDirectionalLightComponent)
            ]
            for light, (_, colour) in zip(lights, _LIGHTS, strict=False):
                light.color = (np.asarray(colour) * factor).tolist()

    def _load_scene(self, options: dict[str, Any]) -> None:
        # ManiSkill builds once by itself, before anybody could name a scene.
        self.table_scene: Scene = options.get("table_scene") or make_scene(0)
        self.table = self._static_box("table", (-0.175, 0.1, 0.85), (0.575, 0.7, 0.02))
        self.floor = self._static_box("floor", (0.0, 0.0, -0.01), (30.0, 30.0, 0.01))
        self.plate = self._build(
            "plate", (PLATE_RADIUS_M, PLATE_RADIUS_M, PLATE_HALF_HEIGHT_M), True, (0.85, 0.85, 0.82)
        )
        self.objects = {
            role: self._build(role, shape.half_size_m, shape.round, placement.rgb)
            for role, placement in self._placements().items()
            for shape in [SHAPES[placement.shape]]
        }

    def _placements(self) -> dict[str, Placement]:
        return {"named": self.table_scene.named, "other": self.table_scene.other}

    def _static_box(self, name: str, centre: Any, half_size: Any) -> Any:
        builder = self.scene.create_actor_builder()
        pose = sapien.Pose(centre)
        colour = [0.45, 0.28, 0.16, 1.0] if name == "table" else [0.35, 0.35, 0.37, 1.0]
        material = sapien.render.RenderMaterial(base_color=colour, roughness=0.6)
        builder.add_box_collision(pose, half_size)
        builder.add_box_visual(pose, half_size, material=material)
        builder.initial_pose = sapien.Pose()
        return builder.build_static(name)

    def _build(self, name: str, half_size: Any, is_round: bool, rgb: Any) -> Any:
        builder = self.scene.create_actor_builder()
        friction = sapien.physx.PhysxMaterial(0.6, 0.6, 0.0)
        material = sapien.render.RenderMaterial(base_color=[*rgb, 1.0], roughness=0.7)
        if is_round:
            size = {"radius": half_size[0], "half_length": half_size[2]}
            builder.add_cylinder_collision(_UPRIGHT, **size, material=friction, density=800)
            builder.add_cylinder_visual(_UPRIGHT, **size, material=material)
        else:
            builder.add_box_collision(half_size=half_size, material=friction, density=800)
            builder.add_box_visual(half_size=half_size, material=material)
        builder.initial_pose = sapien.Pose([1.5, 0.0, 1.0])
        return builder.build(name)

    def _initialize_episode(self, env_idx: Any, options: dict[str, Any]) -> None:
        for role, placement in self._placements().items():
            half_yaw = placement.yaw_rad / 2
            height = SHAPES[placement.shape].half_size_m[2]
            turn = [np.cos(half_yaw), 0.0, 0.0, np.sin(half_yaw)]
            local = sapien.Pose([*placement.xy_m, height], turn)
            self.objects[role].set_pose(BASE_POSE * local)
        x, y = self.table_scene.target_xy_m
        self.plate.set_pose(BASE_POSE * sapien.Pose([x, y, PLATE_HALF_HEIGHT_M]))
        self.agent.reset(HOME_QPOS)
        self.agent.robot.set_pose(BASE_POSE)

    def evaluate(self) -> dict[str, Any]:
        """Nothing: the task reads its own state, once a step."""
        return {}

    def _get_obs_extra(self, info: dict[str, Any]) -> dict[str, Any]:
        return {}
