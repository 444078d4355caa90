"""A tabletop task under the contract of :mod:`envs.base`."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import gymnasium as gym
import numpy as np
import sapien
import torch
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from envs.base import Contact, FloatArray
from envs.contact import link_parents, neighbours, read_contacts
from envs.pose import pose7
from envs.robot import GripperCommand
from envs.shaders import keep_shaders
from envs.spaces import observation_space, read_action
from envs.tabletop.disturbance import DISTURBANCES, Disturbance, make_disturbance
from envs.tabletop.scene import UNSEEN_COLOUR, Scene, draw_scene
from envs.tabletop.simulator import Tabletop
from envs.tabletop.state import State, read_state
from envs.tabletop.task import TabletopTask

__all__ = ["HORIZON_STEPS", "TabletopEnv"]

HORIZON_STEPS: Final = 80


class TabletopEnv(gym.Env[dict[str, Any], NDArray[np.float32]]):
    """A table with two objects and perhaps a goal; the instruction names the one to be moved.

    Actions, shape ``(7,)``, are those of the robot in SimplerEnv: translation of the tool in the
    robot base frame [m], rotation as an axis-angle vector in the base frame [rad], gripper as its
    :class:`~envs.robot.RobotSpec` says. An episode ends (``truncated``) after 80 steps, never at
    success.

    ``reset(options=...)`` takes ``scene`` (index, default 0), ``disturbance`` (a name of
    :data:`envs.tabletop.disturbance.DISTURBANCES` or None) and ``swap_instruction`` (name the other
    object). The scene depends on nothing else; ``seed`` seeds only the action space.

    Args:
        task: the robot, the goal, how scenes are drawn, and the scripted expert.
        camera: name of one of the rig's cameras; its first by default.
        image_size: (height, width) of the policy's image; the rig's by default.
        render_size: (height, width) of the image for people.
        horizon_steps: steps per episode.
        render_mode: None or ``"rgb_array"``.

    Raises:
        ValueError: if an argument is not allowed; the text says what is.
    """

    scene_count: Final = None
    disturbances: Final = tuple(DISTURBANCES)

    def __init__(
        self,
        task: TabletopTask,
        *,
        camera: str | None = None,
        image_size: tuple[int, int] | None = None,
        render_size: tuple[int, int] = (384, 512),
        horizon_steps: int = HORIZON_STEPS,
        render_mode: str | None = "rgb_array",
    ) -> None:
        rig = task.rig
        camera = next(iter(rig.cameras)) if camera is None else camera
        image_size = rig.image_size if image_size is None else image_size
        if camera not in rig.cameras:
            msg = f"unknown camera {camera!r}; known: {', '.join(sorted(rig.cameras))}"
            raise ValueError(msg)
        if render_mode not in (None, "rgb_array"):
            msg = f"unknown render_mode {render_mode!r}; known: None, 'rgb_array'"
            raise ValueError(msg)
        # More threads make every step slower: they spin against the software renderer's own.
        torch.set_num_threads(1)
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": round(rig.robot.control_freq_hz),
        }
        self.render_mode = render_mode
        self.horizon_steps = horizon_steps
        self.robot = rig.robot
        self.control_dt_s = rig.robot.control_dt_s
        self.expert = task.expert
        self._rig = rig
        self._goal = task.goal
        self._spread = task.spread
        self._camera = camera
        self._table = Tabletop(
            rig=rig,
            goal=task.goal,
            spread=task.spread,
            camera=camera,
            image_size=image_size,
            render_size=render_size,
            obs_mode="rgb",
            render_mode="rgb_array",
        )
        keep_shaders(self._table)
        self._apart = neighbours(link_parents(self._table.agent.robot))
        high = rig.action_high
        self.action_space = gym.spaces.Box(-high, high, dtype=np.float32)
        self.observation_space = observation_space(image_size, rig.robot.joint_count)
        self._scene: Scene | None = None
        self._disturbance: Disturbance | None = None
        self._elapsed = 0
        self._opening = 1.0
        self._queue: deque[NDArray[np.float64]] = deque()

    @property
    def task(self) -> str:
        """Kind of task."""
        return self._goal.kind

    @property
    def state(self) -> State:
        """The present state of the table (privileged)."""
        return read_state(self._table)

    @property
    def scene(self) -> Scene:
        """The scene of this episode.

        Raises:
            RuntimeError: before the first reset.
        """
        if self._scene is None:
            msg = "no scene yet; call reset first"
            raise RuntimeError(msg)
        return self._scene

    @property
    def camera_matrix(self) -> FloatArray:
        """Matrix of the policy's camera, pixels, shape ``(3, 3)``."""
        camera = self._table.scene.sensors[self._camera].camera
        return np.asarray(camera.get_intrinsic_matrix()[0].numpy())

    @property
    def depth(self) -> FloatArray:
        """Distance of what the last image shows, along the optical axis, metres, ``(H, W)``."""
        camera = self._table.scene.sensors[self._camera].camera
        # The renderer counts whole millimetres, and its z axis points backwards.
        position = camera._render_cameras[0].get_picture("PositionSegmentation")
        return np.asarray(-1e-3 * position[..., 2].astype(np.float64))

    def pixel_of(self, position: FloatArray) -> FloatArray:
        """Project a point of the base frame into the policy's image.

        Args:
            position: metres in the base frame, shape ``(3,)``.

        Returns:
            (x right, y down) in [-1, 1] over the image, shape ``(2,)``.
        """
        camera = self._table.scene.sensors[self._camera].camera
        extrinsic = camera.get_extrinsic_matrix()[0].numpy()
        world = (self._rig.base_pose * sapien.Pose(position)).p
        seen = self.camera_matrix @ (extrinsic[:3, :3] @ world + extrinsic[:3, 3])
        size = np.array([camera.width, camera.height], dtype=np.float64)
        return np.asarray(2.0 * (seen[:2] / seen[2]) / size - 1.0, dtype=np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Lay the table of one scene; see the class for ``options``.

        Raises:
            ValueError: if an option is unknown or its value is not allowed.
        """
        super().reset(seed=seed)
        given = dict(options or {})
        index = int(given.pop("scene", 0))
        name = given.pop("disturbance", None)
        swap = bool(given.pop("swap_instruction", False))
        if given:
            known = "scene, disturbance, swap_instruction"
            msg = f"unknown reset option(s) {', '.join(sorted(given))}; known: {known}"
            raise ValueError(msg)
        scene = draw_scene(self._spread, index)
        self._disturbance = make_disturbance(name, index) if name else None
        if swap:
            scene = scene.swapped()
        if name == "unseen_colour":
            scene = scene.recoloured(*UNSEEN_COLOUR)
        self._scene = scene
        self._elapsed = 0
        self._opening = 1.0
        self._queue.clear()
        # A rebuilt simulator forgets the last episode (contact caches, drive targets), so that an
        # episode depends on its scene alone; it costs about 0.15 s.
        self._table.reset(seed=0, options={"table_scene": scene, "reconfigure": True})
        self._set_camera()
        self._set_lights()
        return self._observe(self._table.get_obs())

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Move for one control period.

        Args:
            action: shape ``(7,)``, see the class; clipped to the action space.

        Raises:
            ValueError: if the action has another shape or a value that is not finite.
        """
        wanted = read_action(action)
        self._disturb_objects()
        sent = self._disturb_action(np.clip(wanted, -self._rig.action_high, self._rig.action_high))
        # ManiSkill's controller reads the rotation as extrinsic-free XYZ Euler angles.
        euler = Rotation.from_rotvec(sent[3:6]).as_euler("XYZ")
        command = np.concatenate([sent[:3], euler, [self._finger_target(sent[6])]]).astype(
            np.float32
        )
        obs, *_ = self._table.step(command)
        self._elapsed += 1
        seen, info = self._observe(obs)
        return seen, float(info["success"]), False, self._elapsed >= self.horizon_steps, info

    def render(self) -> Any:
        """An image of the whole table for people, uint8 ``(H, W, 3)``."""
        return self._table.render_rgb_array()[0].numpy()

    def close(self) -> None:
        """Free the simulator."""
        self._table.close()

    def _observe(self, obs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        state, scene = self.state, self.scene
        image = obs["sensor_data"][self._camera]["rgb"][0].numpy()
        seen = {
            "image": np.array(image, dtype=np.uint8),
            "tcp_position": state.tcp_position,
            "tcp_quaternion": state.tcp_quaternion,
            "gripper": np.array([state.gripper]),
            "joint_positions": state.joint_positions,
        }
        info = {
            "instruction": scene.instruction,
            "task": self._goal.kind,
            "scene": scene.index,
            "disturbance": self._disturbance.name if self._disturbance else None,
            "elapsed_steps": self._elapsed,
            "success": state.placed,
            "wrong_object": state.other_placed,
            "grasped": state.grasped,
            "other_grasped": state.other_grasped,
            "goal_distance": state.goal_distance_m(),
            "object_poses": self._object_poses(),
            "object": scene.named.name,
            "target": self._goal.furniture or (scene.goal.name if scene.goal else None),
            "tcp_pose_world": pose7(self._table.agent.tcp.pose.sp),
            "contacts": self._contacts(),
        }
        return seen, info

    def _contacts(self) -> tuple[Contact, ...]:
        names = {role: placement.name for role, placement in self.scene.placements.items()}
        return read_contacts(self._table.scene, names, self._apart)

    def _object_poses(self) -> dict[str, FloatArray]:
        bodies = {
            placement.name: self._table.objects[role]
            for role, placement in self.scene.placements.items()
        }
        if self._goal.furniture is not None:
            bodies[self._goal.furniture] = self._table.furniture
        inverse = self._rig.base_pose.inv()
        return {name: pose7(inverse * body.pose.sp) for name, body in bodies.items()}

    def _finger_target(self, gripper: float) -> float:
        """The finger controller's target, -1 to 1, for the gripper number of an action."""
        if self.robot.gripper is GripperCommand.ABSOLUTE:
            return gripper
        # A change of the opening: the whole stroke for 1, as in SimplerEnv.
        self._opening = float(np.clip(self._opening + self.robot.open_sign * gripper, 0.0, 1.0))
        return self.robot.open_sign * (2.0 * self._opening - 1.0)

    def _disturb_objects(self) -> None:
        disturbance = self._disturbance
        if disturbance is None or self._elapsed != disturbance.start_step:
            return
        actor = self._table.objects["named"]
        if disturbance.name == "object_pushed":
            actor.set_linear_velocity(torch.tensor([*disturbance.push_m_s, 0.0]))
        elif disturbance.name == "object_removed":
            actor.set_pose(sapien.Pose([-0.15, 1.1, 0.05]))

    def _disturb_action(self, action: FloatArray) -> FloatArray:
        disturbance = self._disturbance
        if disturbance is None:
            return action
        action = action.copy()
        action[:3] += disturbance.noise(self.scene.index, self._elapsed)
        if disturbance.name != "action_delay":
            return action
        self._queue.append(action)
        if len(self._queue) <= disturbance.delay_steps:
            still = self.robot.open_sign if self.robot.gripper is GripperCommand.ABSOLUTE else 0
            return np.array([0.0] * 6 + [float(still)])
        return self._queue.popleft()

    def _set_camera(self) -> None:
        camera = self._table.scene.sensors[self._camera].camera
        render = camera._render_cameras[0]
        home, offset = render.local_pose, np.zeros(3)
        if self._disturbance is not None and self._disturbance.name == "camera_shifted":
            offset = np.asarray(self._disturbance.camera_offset_m)
        render.local_pose = sapien.Pose(home.p + offset, home.q)

    def _set_lights(self) -> None:
        factor = np.ones(3)
        if self._disturbance is not None and self._disturbance.name == "lights_changed":
            factor = np.asarray(self._disturbance.light)
        self._table.set_light(factor)
