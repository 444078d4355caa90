"""``widowx-put-on``: put the object that the instruction names on the plate."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import gymnasium as gym
import numpy as np
import sapien
import torch
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from envs.base import Contact
from envs.contact import link_parents, neighbours, read_contacts
from envs.robot import ROBOTS
from envs.shaders import keep_shaders
from envs.widowx.agent import BASE_POSE
from envs.widowx.disturbance import DISTURBANCES, Disturbance, make_disturbance
from envs.widowx.scene import UNSEEN_COLOUR, Scene, make_scene
from envs.widowx.state import State, read_state
from envs.widowx.tabletop import CAMERAS, CONTROL_FREQ_HZ, Tabletop

__all__ = ["ACTION_HIGH", "HORIZON_STEPS", "WidowXPutOn"]

HORIZON_STEPS: Final = 80
ACTION_HIGH: Final = np.array([0.05, 0.05, 0.05, 0.25, 0.25, 0.25, 1.0], dtype=np.float32)

FloatArray = NDArray[np.float64]


class WidowXPutOn(gym.Env[dict[str, Any], NDArray[np.float32]]):
    """A table with a plate and two objects; the instruction names the one to be moved.

    Actions, shape ``(7,)``: translation of the tool in the robot base frame [m], rotation as an
    axis-angle vector in the base frame [rad], gripper (+1 open, -1 closed). Control at 5 Hz over
    500 Hz physics. An episode ends (``truncated``) after 80 steps, never at success.

    ``reset(options=...)`` takes ``scene`` (index, default 0), ``disturbance`` (a name of
    :data:`envs.widowx.disturbance.DISTURBANCES` or None) and ``swap_instruction`` (name the other
    object). The scene depends on nothing else; ``seed`` seeds only the action space.
    """

    metadata = {  # noqa: RUF012 - gymnasium declares an instance attribute
        "render_modes": ["rgb_array"],
        "render_fps": 5,
    }
    robot: Final = ROBOTS["widowx"]
    expert: Final = "envs.widowx.expert:expert_action"
    scene_count: Final = None
    control_dt_s: Final = 1.0 / CONTROL_FREQ_HZ
    disturbances: Final = tuple(DISTURBANCES)

    def __init__(
        self,
        *,
        camera: str = "front",
        image_size: tuple[int, int] = (96, 96),
        render_size: tuple[int, int] = (384, 512),
        horizon_steps: int = HORIZON_STEPS,
        render_mode: str | None = "rgb_array",
    ) -> None:
        if camera not in CAMERAS:
            msg = f"unknown camera {camera!r}; known: {', '.join(sorted(CAMERAS))}"
            raise ValueError(msg)
        if render_mode not in (None, "rgb_array"):
            msg = f"unknown render_mode {render_mode!r}; known: None, 'rgb_array'"
            raise ValueError(msg)
        # More threads make every step slower: they spin against the software renderer's own.
        torch.set_num_threads(1)
        self.render_mode = render_mode
        self.horizon_steps = horizon_steps
        self._camera = camera
        self._table = Tabletop(
            camera=camera,
            image_size=image_size,
            render_size=render_size,
            obs_mode="rgb",
            render_mode="rgb_array",
        )
        keep_shaders(self._table)
        self.action_space = gym.spaces.Box(-ACTION_HIGH, ACTION_HIGH, dtype=np.float32)
        self.observation_space = gym.spaces.Dict(
            {
                "image": gym.spaces.Box(0, 255, (*image_size, 3), np.uint8),
                "tcp_position": gym.spaces.Box(-np.inf, np.inf, (3,), np.float64),
                "tcp_quaternion": gym.spaces.Box(-1.001, 1.001, (4,), np.float64),
                "gripper": gym.spaces.Box(0.0, 1.0, (1,), np.float64),
                "joint_positions": gym.spaces.Box(-np.inf, np.inf, (8,), np.float64),
            }
        )
        self._scene: Scene | None = None
        self._disturbance: Disturbance | None = None
        self._elapsed = 0
        self._queue: deque[NDArray[np.float64]] = deque()

    @property
    def state(self) -> State:
        """The present state of the table (privileged)."""
        return read_state(self._table, self.scene)

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

    def pixel_of(self, position: FloatArray) -> FloatArray:
        """Project a point of the base frame into the policy's picture.

        Args:
            position: metres in the base frame, shape ``(3,)``.

        Returns:
            (x right, y down) in [-1, 1] over the picture, shape ``(2,)``.
        """
        camera = self._table.scene.sensors[self._camera].camera
        extrinsic = camera.get_extrinsic_matrix()[0].numpy()
        intrinsic = camera.get_intrinsic_matrix()[0].numpy()
        world = (BASE_POSE * sapien.Pose(position)).p
        seen = intrinsic @ (extrinsic[:3, :3] @ world + extrinsic[:3, 3])
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
        scene = make_scene(index)
        self._disturbance = make_disturbance(name, index) if name else None
        if swap:
            scene = scene.swapped()
        if name == "unseen_colour":
            scene = scene.recoloured(*UNSEEN_COLOUR)
        self._scene = scene
        self._elapsed = 0
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
        """Move for one control period (0.2 s).

        Args:
            action: shape ``(7,)``, see the class; clipped to the action space.

        Raises:
            ValueError: if the action has another shape or a value that is not finite.
        """
        wanted = np.asarray(action, dtype=np.float64)
        if wanted.shape != (7,) or not np.isfinite(wanted).all():
            msg = f"action must be 7 finite numbers, got {np.asarray(action)!r}"
            raise ValueError(msg)
        self._disturb_objects()
        sent = self._disturb_action(np.clip(wanted, -ACTION_HIGH, ACTION_HIGH))
        # ManiSkill's controller reads the rotation as extrinsic-free XYZ Euler angles.
        euler = Rotation.from_rotvec(sent[3:6]).as_euler("XYZ")
        command = np.concatenate([sent[:3], euler, sent[6:]]).astype(np.float32)
        obs, *_ = self._table.step(command)
        self._elapsed += 1
        seen, info = self._observe(obs)
        return seen, float(info["success"]), False, self._elapsed >= self.horizon_steps, info

    def render(self) -> Any:
        """A picture of the whole table for people, uint8 ``(H, W, 3)``."""
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
            "task": "put-on",
            "scene": scene.index,
            "disturbance": self._disturbance.name if self._disturbance else None,
            "elapsed_steps": self._elapsed,
            "success": state.placed,
            "wrong_object": state.other_placed,
            "grasped": state.grasped,
            "other_grasped": state.other_grasped,
            "goal_distance": state.goal_distance_m(),
            "object_poses": {
                scene.named.name: self._pose_of("named"),
                scene.other.name: self._pose_of("other"),
                "plate": _pose7(BASE_POSE.inv() * self._table.plate.pose.sp),
            },
            "object": scene.named.name,
            "target": "plate",
            "tcp_pose_world": _pose7(self._table.agent.tcp.pose.sp),
            "contacts": self._contacts(),
        }
        return seen, info

    def _contacts(self) -> tuple[Contact, ...]:
        names = {"named": self.scene.named.name, "other": self.scene.other.name}
        apart = neighbours(link_parents(self._table.agent.robot))
        return read_contacts(self._table.scene, names, apart)

    def _pose_of(self, role: str) -> FloatArray:
        return _pose7(BASE_POSE.inv() * self._table.objects[role].pose.sp)

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
            return np.array([0.0] * 6 + [1.0])
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


def _pose7(pose: sapien.Pose) -> FloatArray:
    """Position and quaternion (w, x, y, z) in one array, shape ``(7,)``."""
    return np.concatenate([pose.p, pose.q]).astype(np.float64)
