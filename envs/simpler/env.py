"""A task of the real SimplerEnv under the contract of :mod:`envs.base`."""

from __future__ import annotations

from typing import Any, Final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from envs.base import Contact, FloatArray
from envs.contact import neighbours
from envs.goal import goal_distance
from envs.layout import Layout
from envs.pose import between, pose7
from envs.robot import GripperCommand, robot_spec
from envs.simpler.contacts import link_parents, read_contacts
from envs.simpler.distractor import draw_distractors, lay
from envs.simpler.layout_reset import add_all_models, instruction, layout_start, read_layout
from envs.simpler.perturb import Perturbation, offered
from envs.simpler.scene import scene_start
from envs.simpler.simulator import Settings, make_simulator, use_shader
from envs.simpler.task_state import task_state
from envs.simpler.tasks import Kind, simpler_task
from envs.simpler.visibility import NotDrawnError, not_drawn, require_table
from envs.simpler.wrong_object import wrong_object
from envs.spaces import observation_space, read_action
from envs.tolerance import Tolerance
from monitor.errors import ConfigError

__all__ = ["SimplerTaskEnv"]

OPTIONS: Final = ("scene", "disturbance", "layout")
MISSING: Final = ("refuse", "list")
_LAGGING: Final = Tolerance(reach_m=0.04, turn_rad=0.15)
"""Google Robot's deltas start at the measured pose: an arm that lags makes about a third of each."""
EXPERT: Final = "envs.simpler.expert:expert_action"


class SimplerTaskEnv(gym.Env[dict[str, Any], NDArray[Any]]):
    """One of SimplerEnv's ready-made tasks, in this process.

    Actions are SimplerEnv's own, shape ``(7,)``: metres and an axis-angle vector in the base frame;
    the last number opens WidowX's gripper at +1 and closes Google Robot's, whose gripper takes
    changes. ``reset(options=...)`` takes ``scene`` (default 0), ``disturbance``, and ``layout``: other
    objects for a task of its kind, as :meth:`envs.layout.Layout.to_json` writes them.

    ``info`` also has ``benchmark_success``, SimplerEnv's own verdict, which for some tasks remembers
    and is true of an object that is held over its goal, and ``not_drawn``, names of objects that are
    on the table and not in the image.

    Args:
        task: SimplerEnv's name of it, a key of :data:`envs.simpler.tasks.TASKS`.
        shader: ``"ibl"``, or ``"rt"`` to trace rays as SimplerEnv packages its drawer tasks; a
            reset then takes about a minute without a GPU.
        image_size: (height, width) of the image; None for SimplerEnv's own.
        overlay: lay the real photograph behind the scene ("visual matching").
        missing: what to do about objects that are not rendered: ``"refuse"`` the scene or ``"list"``
            them.
        horizon_steps: steps per episode; None for SimplerEnv's own number.
        render_mode: None or ``"rgb_array"``.

    Raises:
        ValueError: if an argument is not allowed; the text says what is.
        ModuleNotFoundError: if SimplerEnv is not importable in this interpreter.
    """

    metadata = {  # noqa: RUF012 - gymnasium declares an instance attribute
        "render_modes": ["rgb_array"],
        "render_fps": 5,
    }

    def __init__(
        self,
        task: str,
        *,
        shader: str = "ibl",
        image_size: tuple[int, int] | None = None,
        overlay: bool = True,
        missing: str = "refuse",
        horizon_steps: int | None = None,
        render_mode: str | None = "rgb_array",
    ) -> None:
        self.task = simpler_task(task)
        if render_mode not in (None, "rgb_array"):
            msg = f"unknown render_mode {render_mode!r}; known: None, 'rgb_array'"
            raise ConfigError(msg)
        if missing not in MISSING:
            msg = f"missing must be one of {', '.join(MISSING)}, got {missing!r}"
            raise ConfigError(msg)
        self.render_mode = render_mode
        self.robot = robot_spec(self.task.robot)
        self.control_dt_s = self.robot.control_dt_s
        self.tolerance = _LAGGING if self.task.robot == "google_robot" else Tolerance()
        self.horizon_steps = self.task.horizon_steps if horizon_steps is None else horizon_steps
        self.scene_count = self.task.scene_count
        self.disturbances = offered(self.task)
        self._missing = missing
        self._settings = Settings(shader=shader, image_size=image_size, overlay=overlay)
        self._task_state = task_state(self.task.kind)
        self._sim: Any = make_simulator(self.task, self._settings)
        self._photograph = self._sim.rgb_overlay_img
        self._apart = neighbours(link_parents(self._sim.agent.robot))
        self._low, self._high = self._sim.action_space.low, self._sim.action_space.high
        self.action_space = gym.spaces.Box(self._low, self._high, dtype=np.float32)
        camera = self._sim._cameras[self.task.camera].camera
        self.observation_space = observation_space(
            (camera.height, camera.width), self.robot.joint_count
        )
        self._perturbation = Perturbation(self.task, None, 0)
        self._layout: Layout | None = None
        add_all_models(self._sim)
        self._distractors: list[Any] = []
        self._begun: dict[str, FloatArray] = {}
        self._not_drawn: tuple[str, ...] = ()
        self._image: NDArray[np.uint8] | None = None
        self._scene = self._elapsed = 0
        self.grasped = self.success = False
        able = self.task.robot == "widowx" or self.task.kind is Kind.PICK
        self.expert = EXPERT if able else None

    @property
    def sim(self) -> Any:
        """SimplerEnv's own environment, for privileged readers.

        Raises:
            RuntimeError: after :meth:`close`.
        """
        if self._sim is None:
            msg = f"the environment {self.task.name!r} is closed"
            raise RuntimeError(msg)
        return self._sim

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Any]:
        """Begin the episode of one scene; ``seed`` seeds only the action space.

        Raises:
            ValueError: if an option is unknown or its value is not allowed.
            NotDrawnError: if an object of the scene is not rendered, or the table is missing.
        """
        super().reset(seed=seed)
        if seed is not None:
            self.action_space.seed(seed)
        given = dict(options or {})
        scene, name = int(given.pop("scene", 0)), given.pop("disturbance", None)
        raw_layout = given.pop("layout", None)
        if given:
            msg = f"unknown reset option(s) {', '.join(sorted(given))}; known: {', '.join(OPTIONS)}"
            raise ConfigError(msg)
        layout = None if raw_layout is None else read_layout(self.task, raw_layout)
        start = scene_start(self.task, scene) if layout is None else layout_start(layout, scene)
        perturbation = Perturbation(self.task, name, scene)
        sim = self.sim
        use_shader(self._settings)
        sim.rgb_overlay_img = self._photograph
        begin = sim.reset if layout is None else sim.reset_with_layout
        seen, _ = begin(seed=start.seed, options=start.options)
        self._scene, self._elapsed, self._perturbation = scene, 0, perturbation
        self._layout = layout
        self._distractors = self._lay_more()
        self._check_drawn()
        if perturbation.change_picture(sim) or self._distractors:
            seen = sim.get_obs()
        self._begun = self._world()
        return self._observe(seen), self._make_info(sim.evaluate())

    def step(self, action: NDArray[Any]) -> tuple[Any, float, bool, bool, Any]:
        """Move for one control period.

        Args:
            action: shape ``(7,)``, see the class; clipped to the action space.

        Raises:
            ValueError: if the action is not 7 finite numbers.
        """
        wanted = read_action(action)
        sim = self.sim
        self._perturbation.disturb_object(self._task_state.held(sim), self._elapsed)
        clipped = np.clip(wanted, self._low, self._high)
        sent = self._perturbation.disturb_action(clipped, self._elapsed, self.rest_action())
        seen, _, _, _, sim_info = sim.step(sent.astype(np.float32))
        self._elapsed += 1
        info = self._make_info(sim_info)
        done = self._elapsed >= self.horizon_steps
        return self._observe(seen), float(info["success"]), False, done, info

    def rest_action(self) -> FloatArray:
        """Action that neither moves the arm nor closes its fingers, shape ``(7,)``."""
        opens = self.robot.open_sign if self.robot.gripper is GripperCommand.ABSOLUTE else 0
        return np.array([0.0] * 6 + [float(opens)])

    def render(self) -> Any:
        """The policy's image, uint8 ``(H, W, 3)``.

        Raises:
            RuntimeError: before the first reset.
        """
        if self._image is None:
            msg = "no image yet; call reset first"
            raise RuntimeError(msg)
        return self._image.copy()

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
        camera = self.sim._cameras[self.task.camera].camera
        base = self.sim.agent.robot.pose
        world = np.append((base * type(base)(np.asarray(position), [1.0, 0, 0, 0])).p, 1.0)
        seen = camera.get_intrinsic_matrix() @ (camera.get_extrinsic_matrix()[:3] @ world)
        size = np.array([camera.width, camera.height], dtype=np.float64)
        return np.asarray(2.0 * (seen[:2] / seen[2]) / size - 1.0, dtype=np.float64)

    def object_position(self) -> FloatArray:
        """Where the named object is now (privileged), metres in the base frame, shape ``(3,)``."""
        name, _ = self._task_state.names(self.sim)
        return between(pose7(self.sim.agent.robot.pose), self._world()[name])[:3]

    def _lay_more(self) -> list[Any]:
        """Bodies beyond those that SimplerEnv lays by itself."""
        sim = self.sim
        more: dict[str, tuple[Any, Any]] = {}
        known = self._task_state.poses(sim)
        if self._layout is not None:
            more = {
                name: (placement.xy, placement.quaternion)
                for name, placement in self._layout.objects.items()
                if name not in known
            }
        if self._perturbation.distracts:
            taken = [*known.values(), *(np.asarray(xy) for xy, _ in more.values())]
            drawn = draw_distractors(self.task.robot, taken, self._scene)
            more.update({name: at for name, at in drawn.items() if name not in {*known, *more}})
        return lay(sim, more)

    def _check_drawn(self) -> None:
        """Refuse or note objects that are not rendered."""
        sim = self.sim
        if self.task.kind not in (Kind.OPEN_DRAWER, Kind.CLOSE_DRAWER, Kind.PUT_IN_DRAWER):
            require_table(sim)
        distractors = {str(body.name): body for body in self._distractors}
        self._not_drawn = not_drawn({**self._task_state.bodies(sim), **distractors})
        if self._not_drawn and self._missing == "refuse":
            msg = (
                f"scene {self._scene} of {self.task.name!r} has objects that are not rendered: "
                f"{', '.join(self._not_drawn)}; their visual files are missing from "
                f"{sim.asset_root}/models. Complete the assets, leave the scene out, or give "
                "missing='list'"
            )
            raise NotDrawnError(msg)

    def _world(self) -> dict[str, FloatArray]:
        """Poses by name in the world, distractors included."""
        distractors = {str(body.name): pose7(body.pose) for body in self._distractors}
        return {**self._task_state.poses(self.sim), **distractors}

    def _instruction(self) -> str:
        if self._layout is not None:
            return instruction(self._layout, self.sim)
        return str(self.sim.get_language_instruction())

    def _observe(self, seen: Any) -> dict[str, Any]:
        colour = np.asarray(seen["image"][self.task.camera]["Color"])[..., :3]
        # As SimplerEnv's own wrapper makes bytes of it: cut off, not rounded.
        self._image = np.clip(colour * 255, 0, 255).astype(np.uint8)
        sim = self.sim
        tcp = between(pose7(sim.agent.robot.pose), pose7(sim.tcp.pose))
        opening = 1.0 - float(sim.agent.get_gripper_closedness())
        return {
            "image": self._image.copy(),
            "tcp_position": tcp[:3].copy(),
            "tcp_quaternion": tcp[3:] / np.linalg.norm(tcp[3:]),
            "gripper": np.array([np.clip(opening, 0.0, 1.0)]),
            "joint_positions": np.array(sim.agent.robot.get_qpos(), dtype=np.float64),
        }

    def _make_info(self, sim_info: Any) -> dict[str, Any]:
        sim = self.sim
        base, tcp_world, world = pose7(sim.agent.robot.pose), pose7(sim.tcp.pose), self._world()
        contacts: tuple[Contact, ...] = read_contacts(
            sim._scene.get_contacts(), float(sim.sim_freq), self._apart
        )
        name, goal = self._task_state.names(sim)
        grasped = bool(sim.agent.check_grasp(self._task_state.held(sim)))
        success = self._task_state.success(sim, sim_info, contacts, grasped=grasped)
        self.grasped, self.success = grasped, success
        others = {key: pose for key, pose in world.items() if key not in (name, goal)}
        ended = None if goal is None else world[goal][:3]
        return {
            "instruction": self._instruction(),
            "task": self.task.kind.value,
            "scene": self._scene,
            "disturbance": self._perturbation.name,
            "elapsed_steps": self._elapsed,
            "success": success,
            "wrong_object": wrong_object(
                self.task.kind, sim, others, self._begun, self._distractors
            ),
            "grasped": grasped,
            "goal_distance": goal_distance(
                tcp_world[:3], world[name][:3], ended, grasped=grasped, success=success
            ),
            "object": name,
            "target": goal,
            "object_poses": {key: between(base, pose) for key, pose in world.items()},
            "tcp_pose_world": tcp_world,
            "contacts": contacts,
            "benchmark_success": bool(sim_info["success"]),
            "not_drawn": self._not_drawn,
        }
