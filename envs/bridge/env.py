"""A bridge twin under the contract of :mod:`envs.base`."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray

from envs.base import FloatArray, Info, Observation
from envs.bridge.assets import require_assets
from envs.bridge.simulator import CAMERA, make_simulator
from envs.bridge.tasks import bridge_task
from envs.contact import link_parents, neighbours, read_contacts
from envs.goal import goal_distance
from envs.pose import between, euler_xyz, multiply, pose7
from envs.robot import ROBOTS
from envs.spaces import observation_space, read_action
from monitor.errors import ConfigError

__all__ = ["BridgeEnv"]

ACTION_HIGH: Final = np.array([1.0, 1.0, 1.0, *[np.pi / 2] * 3, 1.0], dtype=np.float32)
FINGER_CLOSED_M: Final = 0.015
FINGER_OPEN_M: Final = 0.037
_MOVED_M: Final = 0.03
_LONG_GRASP_STEPS: Final = 5


class BridgeEnv(gym.Env[Any, Any]):
    """One of ManiSkill 3's four WidowX twins of Bridge V2.

    Actions, shape ``(7,)``, are those of SimplerEnv's WidowX: translation of the tool in the robot
    base frame [m], rotation as an axis-angle vector in the base frame [rad], gripper (+1 open, -1
    closed). Control at 5 Hz over 500 Hz physics. An episode ends (``truncated``) at its horizon,
    never at success.

    ``reset(options=...)`` takes ``scene``, the task's start configuration (ManiSkill's and
    SimplerEnv's ``episode_id``). Success means that ManiSkill says so and the fingers have let go:
    its own verdict, in ``info["benchmark_success"]``, is also true for an eggplant that hangs 8 cm
    over the basket. ``info`` also has SimplerEnv's ``moved_correct_obj``, ``moved_wrong_obj`` and
    ``consecutive_grasp``, which ManiSkill leaves out or remembers; here they are of this moment.

    Args:
        task: SimplerEnv's name of it, a key of :data:`envs.bridge.tasks.TASKS`.
        image_size: (height, width) of the image.
        horizon_steps: steps per episode; None for the task's own number.
        render_mode: None or ``"rgb_array"``.

    Raises:
        ValueError: if an argument is not allowed; the text says what is.
        MissingAssetsError: if the meshes are not on this machine; the text says how to get them.
    """

    metadata = {  # noqa: RUF012 - gymnasium declares an instance attribute
        "render_modes": ["rgb_array"],
        "render_fps": 5,
    }
    robot: Final = ROBOTS["widowx"]
    expert: Final = "envs.bridge.expert:expert_action"
    control_dt_s: Final = robot.control_dt_s
    disturbances: tuple[str, ...] = ()

    def __init__(
        self,
        task: str,
        *,
        image_size: tuple[int, int] = (480, 640),
        horizon_steps: int | None = None,
        render_mode: str | None = "rgb_array",
    ) -> None:
        self.task = bridge_task(task)
        if render_mode not in (None, "rgb_array"):
            msg = f"unknown render_mode {render_mode!r}; known: None, 'rgb_array'"
            raise ConfigError(msg)
        # More threads make every step slower: they spin against the software renderer's own.
        torch.set_num_threads(1)
        self.render_mode = render_mode
        self.horizon_steps = self.task.horizon_steps if horizon_steps is None else horizon_steps
        self.scene_count: int | None = self.task.scene_count
        self._sim: Any = make_simulator(self.task, image_size, require_assets(self.task))
        self._apart = neighbours(link_parents(self._sim.agent.robot))
        self.action_space = gym.spaces.Box(-ACTION_HIGH, ACTION_HIGH, dtype=np.float32)
        self.observation_space = observation_space(image_size, self.robot.joint_count)
        self._scene = self._elapsed = self._held_steps = 0
        self._begun: dict[str, FloatArray] = {}
        self.last: tuple[Observation, Any] | None = None
        """What reset or step returned last; for privileged readers."""

    @property
    def sim(self) -> Any:
        """ManiSkill's own environment, for privileged readers.

        Raises:
            RuntimeError: after :meth:`close`.
        """
        if self._sim is None:
            msg = f"the environment {self.task.name!r} is closed"
            raise RuntimeError(msg)
        return self._sim

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the episode of one scene; ``seed`` seeds only the action space.

        Raises:
            ValueError: if an option is unknown or its value is not allowed.
        """
        super().reset(seed=seed)
        given = dict(options or {})
        scene, disturbance = int(given.pop("scene", 0)), given.pop("disturbance", None)
        if given:
            msg = f"unknown reset option(s) {', '.join(sorted(given))}; known: scene"
            raise ConfigError(msg)
        if disturbance is not None:
            msg = f"unknown disturbance {disturbance!r}; bridge/{self.task.name} has none"
            raise ConfigError(msg)
        if not 0 <= scene < self.task.scene_count:
            last = self.task.scene_count - 1
            msg = f"scene {scene} is none of bridge/{self.task.name}; it has scenes 0 to {last}"
            raise ConfigError(msg)
        # A rebuilt simulator forgets the last episode. Without it ManiSkill lets the objects settle
        # while the arm still stands where the last episode left it, perhaps among them.
        seen, _ = self.sim.reset(seed=0, options={"episode_id": scene, "reconfigure": True})
        self._scene, self._elapsed, self._held_steps = scene, 0, 0
        self._begun = self._world()
        return self._keep(seen, self.sim.evaluate())

    def step(
        self, action: NDArray[np.floating[Any]]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Move for one control period (0.2 s).

        Args:
            action: shape ``(7,)``, see the class; clipped to the action space.

        Raises:
            ValueError: if the action is not 7 finite numbers.
        """
        wanted = read_action(action)
        sent = np.clip(wanted, -ACTION_HIGH, ACTION_HIGH)
        # ManiSkill reads the rotation as Euler angles, SimplerEnv as an axis-angle vector.
        sent[3:6] = euler_xyz(sent[3:6])
        # ManiSkill adds what is grasped now to what it remembers; with no memory, only now counts.
        self.sim.episode_stats["is_src_obj_grasped"][:] = False
        seen, _, _, _, sim_info = self.sim.step(sent.astype(np.float32))
        self._elapsed += 1
        obs, info = self._keep(seen, sim_info)
        done = self._elapsed >= self.horizon_steps
        return obs, float(info["success"]), False, done, info

    def render(self) -> Any:
        """The policy's image, uint8 ``(H, W, 3)``.

        Raises:
            RuntimeError: before the first reset.
        """
        if self.last is None:
            msg = "no image yet; call reset first"
            raise RuntimeError(msg)
        return self.last[0]["image"].copy()

    def close(self) -> None:
        """Free the simulator; closing twice does nothing."""
        if self._sim is not None:
            self._sim.close()
            self._sim = None

    def pixel_of(self, position: FloatArray) -> FloatArray:
        """Project a point of the base frame into the policy's image.

        Args:
            position: metres in the base frame, shape ``(3,)``.

        Returns:
            (x right, y down) in [-1, 1] over the image, shape ``(2,)``.
        """
        camera = self.sim.scene.sensors[CAMERA].camera
        world = multiply(self._base(), [*position, 1.0, 0.0, 0.0, 0.0])[:3]
        extrinsic = camera.get_extrinsic_matrix()[0].numpy()
        seen = camera.get_intrinsic_matrix()[0].numpy() @ (extrinsic[:3] @ np.append(world, 1.0))
        size = np.array([camera.width, camera.height], dtype=np.float64)
        return np.asarray(2.0 * (seen[:2] / seen[2]) / size - 1.0, dtype=np.float64)

    def _base(self) -> FloatArray:
        return pose7(self.sim.agent.robot.pose.sp)

    def _tool(self) -> FloatArray:
        return pose7(self.sim.agent.robot.links_map["ee_gripper_link"].pose.sp)

    def _world(self) -> dict[str, FloatArray]:
        return {name: pose7(actor.pose.sp) for name, actor in self.sim.objs.items()}

    def _keep(self, seen: Any, sim_info: Any) -> tuple[Observation, Any]:
        """What is seen and true now, kept for privileged readers and copied for the caller."""
        self.last = self._observe(seen), self._make_info(sim_info)
        return deepcopy(self.last)

    def _observe(self, seen: Any) -> Observation:
        tcp = between(self._base(), self._tool())
        joints = self.sim.agent.robot.get_qpos()[0].numpy().astype(np.float64)
        opening = (joints[6:8].mean() - FINGER_CLOSED_M) / (FINGER_OPEN_M - FINGER_CLOSED_M)
        return Observation(
            image=np.array(seen["sensor_data"][CAMERA]["rgb"][0].numpy(), dtype=np.uint8),
            tcp_position=tcp[:3].copy(),
            tcp_quaternion=tcp[3:] / np.linalg.norm(tcp[3:]),
            gripper=np.array([np.clip(opening, 0.0, 1.0)]),
            joint_positions=joints,
        )

    def _make_info(self, sim_info: Any) -> Any:
        sim, task = self.sim, self.task
        base, tool, world = self._base(), self._tool(), self._world()
        grasped, verdict = (bool(sim_info[name][0]) for name in ("is_src_obj_grasped", "success"))
        success = verdict and not grasped
        self._held_steps = self._held_steps + 1 if grasped else 0
        obj, goal = world[task.object], world[task.target]
        moved, shifted = (
            float(np.linalg.norm((world[name] - self._begun[name])[:2]))
            for name in (task.object, task.target)
        )
        info = Info(
            instruction=str(sim.get_language_instruction()[0]),
            task=task.kind,
            scene=self._scene,
            disturbance=None,
            elapsed_steps=self._elapsed,
            success=success,
            wrong_object=None,
            grasped=grasped,
            goal_distance=goal_distance(
                tool[:3], obj[:3], goal[:3], grasped=grasped, success=success
            ),
            object=task.object,
            target=task.target,
            object_poses={name: between(base, pose) for name, pose in world.items()},
            tcp_pose_world=tool,
            contacts=read_contacts(sim.scene, {}, self._apart),
        )
        more = {
            "benchmark_success": verdict,
            "moved_correct_obj": moved > _MOVED_M and moved > shifted,
            "moved_wrong_obj": shifted > _MOVED_M and shifted > moved,
            "consecutive_grasp": self._held_steps >= _LONG_GRASP_STEPS,
        }
        return {**info, **more}
