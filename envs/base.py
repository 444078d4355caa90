"""The contract of every environment: what it returns, in which frame and unit, what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from envs.robot import RobotSpec

if TYPE_CHECKING:
    import gymnasium as gym

__all__ = ["Contact", "FloatArray", "Info", "Observation", "RobotEnv"]

FloatArray = NDArray[np.float64]


class Contact(NamedTuple):
    """Two bodies that touch at the end of a step.

    Attributes:
        body_a: name of one body, without the simulator's own prefixes.
        body_b: name of the other.
        force_n: size of the force between them, newtons.
    """

    body_a: str
    body_b: str
    force_n: float


class Observation(TypedDict):
    """What a policy may see and feel.

    Attributes:
        image: RGB, shape ``(H, W, 3)`` uint8.
        tcp_position: tool centre point in the robot base frame, metres, shape ``(3,)``.
        tcp_quaternion: (w, x, y, z) in the robot base frame, shape ``(4,)``.
        gripper: measured opening, 0 closed to 1 open, shape ``(1,)``.
        joint_positions: radians, fingers as the simulator counts them, shape ``(J,)``.
    """

    image: NDArray[np.uint8]
    tcp_position: FloatArray
    tcp_quaternion: FloatArray
    gripper: FloatArray
    joint_positions: FloatArray


class Info(TypedDict):
    """What is true now; privileged, except for instruction and task.

    Nothing is latched: every value speaks of this moment. None means that the simulator, or the
    task, does not have one. An adapter of a published benchmark adds ``benchmark_success``, that
    benchmark's own verdict word for word, which summaries count next to ours.

    Attributes:
        instruction: the sentence given to the policy.
        task: kind of task, the key of calibrations and rules: "put-on", "pick", "move-near", ….
        scene: index that :meth:`RobotEnv.reset` was given.
        disturbance: name of what disturbs this episode.
        elapsed_steps: steps since the reset.
        success: the task is solved now; what is to be put somewhere is let go there.
        wrong_object: another object is where the named one should be.
        grasped: the fingers hold the named object.
        goal_distance: metres left by the phase of the task (docs/metrics.md, goal distance).
        object: name of the object to be moved, a key of ``object_poses``.
        target: name of the goal object, a key of ``object_poses``.
        object_poses: position [m] and quaternion (w, x, y, z) in the robot base frame by name,
            each of shape ``(7,)``.
        tcp_pose_world: position [m] and quaternion (w, x, y, z) in the world, shape ``(7,)``.
        contacts: bodies that touch at the end of the step; contacts of neighbouring links of the
            robot are left out.
    """

    instruction: str
    task: str
    scene: int
    disturbance: str | None
    elapsed_steps: int
    success: bool
    wrong_object: bool | None
    grasped: bool | None
    goal_distance: float | None
    object: str
    target: str | None
    object_poses: dict[str, FloatArray]
    tcp_pose_world: FloatArray
    contacts: tuple[Contact, ...] | None


class RobotEnv(Protocol):
    """A gymnasium environment that a policy moves a robot in.

    The same scene with the same actions gives the same episode, whatever ran before. An episode
    ends (``truncated``) at ``horizon_steps``, never at success. Actions have shape ``(7,)`` in the
    units and signs of ``robot``; they are clipped to ``action_space``.

    Attributes:
        robot: what its actions mean.
        control_dt_s: seconds per step.
        horizon_steps: steps per episode.
        disturbances: names that ``reset(options={"disturbance": ...})`` takes.
        scene_count: number of scenes; None where any index is one.
    """

    robot: RobotSpec
    control_dt_s: float
    horizon_steps: int
    disturbances: tuple[str, ...]
    scene_count: int | None
    action_space: gym.spaces.Space[Any]
    observation_space: gym.spaces.Space[Any]
    render_mode: str | None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Begin the episode of ``options["scene"]`` (default 0).

        Raises:
            ValueError: if an option is unknown or its value is not allowed; the text lists them.
        """
        ...

    def step(
        self, action: NDArray[np.floating[Any]]
    ) -> tuple[Observation, float, bool, bool, Info]:
        """Move for one control period.

        Raises:
            ValueError: if the action is not 7 finite numbers.
        """
        ...

    def render(self) -> NDArray[np.uint8]:
        """An image for people, shape ``(H, W, 3)``."""
        ...

    def close(self) -> None:
        """Free the simulator."""
        ...
