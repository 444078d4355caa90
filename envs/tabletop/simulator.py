"""The ManiSkill scene: table, goal, objects, lights and two cameras around a robot."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import sapien
import sapien.render
import torch
from mani_skill.envs.sapien_env import BaseEnv
from mani_skill.sensors.camera import CameraConfig
from mani_skill.utils.structs.types import SimConfig
from numpy.typing import NDArray

from envs.tabletop.goal import Goal
from envs.tabletop.rig import Rig
from envs.tabletop.scene import Placement, Scene, Spread, draw_scene

__all__ = ["Tabletop"]

_AMBIENT: Final = (0.3, 0.3, 0.3)
_LIGHTS: Final = (
    ((0.6, 0.3, -1.0), (1.1, 1.1, 1.1)),
    ((-0.4, -0.5, -1.0), (0.5, 0.5, 0.5)),
)
"""Direction and linear RGB of each lamp."""
# sapien's cylinders lie along x; this rotation stands them up.
_UPRIGHT: Final = sapien.Pose(q=[0.70710678, 0.0, 0.70710678, 0.0])


class Tabletop(BaseEnv):  # type: ignore[misc]
    """One arm, a goal and the objects of a scene, built again at every reset.

    Pass ``options={"table_scene": scene, "reconfigure": True}`` to ``reset``.
    """

    SUPPORTED_REWARD_MODES = ["none"]  # noqa: RUF012 - ManiSkill reads a class attribute

    def __init__(
        self,
        *,
        rig: Rig,
        goal: Goal,
        spread: Spread,
        camera: str,
        image_size: tuple[int, int],
        render_size: tuple[int, int],
        **kwargs: Any,
    ) -> None:
        self.rig = rig
        self.goal = goal
        self._spread = spread
        self._camera = camera
        self._image_size = image_size
        self._render_size = render_size
        super().__init__(
            robot_uids=rig.agent.uid,
            reward_mode="none",
            sim_backend="physx_cpu",
            render_backend="gpu" if torch.cuda.is_available() else "cpu",
            **kwargs,
        )

    @property
    def _default_sim_config(self) -> SimConfig:
        return SimConfig(
            sim_freq=self.rig.physics_freq_hz, control_freq=round(self.rig.robot.control_freq_hz)
        )

    @property
    def _default_sensor_configs(self) -> list[CameraConfig]:
        return [self.rig.cameras[self._camera](self._image_size)]

    @property
    def _default_human_render_camera_configs(self) -> CameraConfig:
        return self.rig.overview(self._render_size)

    def _load_agent(self, options: dict[str, Any]) -> None:
        super()._load_agent(options, self.rig.base_pose)

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
        # ManiSkill builds once by itself, before a scene can be chosen.
        self.table_scene: Scene = options.get("table_scene") or draw_scene(self._spread, 0)
        rig = self.rig
        self._static_box("table", rig.table_centre_m, rig.table_half_size_m)
        self._static_box("floor", (0.0, 0.0, -0.01), (30.0, 30.0, 0.01))
        self.furniture = self.goal.build(self.scene)
        self.objects = {
            role: self._build(role, placement)
            for role, placement in self.table_scene.placements.items()
        }

    @property
    def goal_body(self) -> Any:
        """What is the goal: furniture, or one of the objects; None where there is no goal."""
        return self.objects.get("goal") if self.furniture is None else self.furniture

    def _static_box(self, name: str, centre: Any, half_size: Any) -> None:
        builder = self.scene.create_actor_builder()
        pose = sapien.Pose(centre)
        colour = [0.45, 0.28, 0.16, 1.0] if name == "table" else [0.35, 0.35, 0.37, 1.0]
        material = sapien.render.RenderMaterial(base_color=colour, roughness=0.6)
        builder.add_box_collision(pose, half_size)
        builder.add_box_visual(pose, half_size, material=material)
        builder.initial_pose = sapien.Pose()
        builder.build_static(name)

    def _build(self, name: str, placement: Placement) -> Any:
        body = placement.body
        builder = self.scene.create_actor_builder()
        friction = sapien.physx.PhysxMaterial(0.6, 0.6, 0.0)
        material = sapien.render.RenderMaterial(base_color=[*placement.rgb, 1.0], roughness=0.7)
        solid = {"material": friction, "density": body.density_kg_m3}
        if body.round:
            size = {"radius": body.half_size_m[0], "half_length": body.half_size_m[2]}
            builder.add_cylinder_collision(_UPRIGHT, **size, **solid)
            builder.add_cylinder_visual(_UPRIGHT, **size, material=material)
        else:
            builder.add_box_collision(half_size=body.half_size_m, **solid)
            builder.add_box_visual(half_size=body.half_size_m, material=material)
        builder.initial_pose = sapien.Pose([1.5, 0.0, 1.0])
        return builder.build(name)

    def _initialize_episode(self, env_idx: Any, options: dict[str, Any]) -> None:
        base, surface_m = self.rig.base_pose, self.rig.surface_m
        for role, placement in self.table_scene.placements.items():
            half_yaw = placement.yaw_rad / 2
            height = placement.body.half_size_m[2] + surface_m
            quaternion = [np.cos(half_yaw), 0.0, 0.0, np.sin(half_yaw)]
            local = sapien.Pose([*placement.xy_m, height], quaternion)
            self.objects[role].set_pose(base * local)
        if self.furniture is not None and self.table_scene.target_xy_m is not None:
            x, y = self.table_scene.target_xy_m
            height = self.goal.origin_m + surface_m
            self.furniture.set_pose(base * sapien.Pose([x, y, height]))
        self.agent.reset(self.agent.home_qpos)
        self.agent.robot.set_pose(base)

    def evaluate(self) -> dict[str, Any]:
        """Return nothing: the task reads its own state once per step."""
        return {}

    def _get_obs_extra(self, info: dict[str, Any]) -> dict[str, Any]:
        return {}
