"""The environment under test, as the checks use it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from types import TracebackType
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from envs.base import FloatArray, Info, Observation, RobotEnv
from envs.expert import NoExpertError, ask_expert
from envs.pose import rotation_vector
from envs.robot import GripperCommand
from envs.tolerance import Tolerance

__all__ = [
    "WAY_M",
    "Expert",
    "Frame",
    "NotTestableError",
    "Trial",
    "ViolationError",
    "fail",
    "object_position",
]
Expert = Callable[[Any], FloatArray]

WAY_M: Final = 0.05
_SETTLE_STEPS: Final = 6
_STILL_M: Final = 5e-4
_STILL_RAD: Final = 5e-3


class ViolationError(AssertionError):
    """The environment breaks the contract; the text says what was expected and what was found."""


class NotTestableError(Exception):
    """This check cannot run here; the text says what is missing."""


def fail(text: str) -> NoReturn:
    """Report a violation of the contract."""
    raise ViolationError(text)


class Frame(NamedTuple):
    """What the environment returned once, copied."""

    obs: Observation
    info: Info
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False


def object_position(info: Info) -> FloatArray:
    """Return the position of the object to be moved, metres in the base frame, shape ``(3,)``."""
    return info["object_poses"][info["object"]][:3]


class Trial:
    """An environment under test; it is made when it is first needed.

    Args:
        make: makes the environment.
        expert: gives the action that brings the task nearer to its end, from the environment
            (privileged); the environment's own by default. Without one the checks that need a
            solved task cannot run.
        scenes: scene indices to test; by default four spread over all scenes, including the first.
        tolerance: how exact the simulator must be; by default what the environment names in an
            attribute ``tolerance``, else the usual.
    """

    def __init__(
        self,
        make: Callable[[], RobotEnv],
        *,
        expert: Expert | None = None,
        scenes: tuple[int, ...] = (),
        tolerance: Tolerance | None = None,
    ) -> None:
        self._expert = expert or ask_expert
        self._tolerance = tolerance
        self._make = make
        self._env: RobotEnv | None = None
        self._scenes = scenes
        self._solved: tuple[Frame, ...] | None = None
        self._starts: dict[int, tuple[Frame, Frame]] = {}
        self._moves: dict[int, tuple[Frame, ...]] = {}

    def __enter__(self) -> Trial:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def env(self) -> RobotEnv:
        """The environment as it was made."""
        if self._env is None:
            self._env = self._make()
        return self._env

    @property
    def core(self) -> Any:
        """The environment without wrappers; attributes are read here."""
        return getattr(self.env, "unwrapped", self.env)

    @property
    def tolerance(self) -> Tolerance:
        """Allowed deviations of the simulator."""
        return self._tolerance or getattr(self.core, "tolerance", None) or Tolerance()

    @property
    def scenes(self) -> tuple[int, ...]:
        """Indices of the scenes to test."""
        if self._scenes:
            return self._scenes
        count = self.core.scene_count
        # Neighbours often differ in one object only, so four are spread over all scenes.
        return tuple(range(4)) if count is None else tuple(range(0, count, -(-count // 4)))

    def close(self) -> None:
        """Close the environment if it was made."""
        if self._env is not None:
            self._env.close()
            self.forget()

    def forget(self) -> None:
        """Drop the closed environment; the next check makes another."""
        self._env = None

    def reset(self, scene: int | None = None, **options: Any) -> Frame:
        """Begin an episode of a scene (default: the first to test)."""
        index = self.scenes[0] if scene is None else scene
        return Frame(*deepcopy(self.env.reset(options={"scene": index, **options})))

    def step(self, action: FloatArray) -> Frame:
        """Move for one period."""
        obs, reward, terminated, truncated, info = self.env.step(action.copy())
        return Frame(
            deepcopy(obs), deepcopy(info), float(reward), bool(terminated), bool(truncated)
        )

    def action(
        self, move: Any = (0.0, 0.0, 0.0), rotvec: Any = (0.0, 0.0, 0.0), opening: int | None = None
    ) -> FloatArray:
        """An action: metres, radians, and +1 to open, -1 to close, None to leave the fingers.

        An arm whose gripper takes an absolute opening keeps its fingers open.
        """
        robot = self.core.robot
        if opening is None:
            opening = 1 if robot.gripper is GripperCommand.ABSOLUTE else 0
        return np.array([*move, *rotvec, opening * robot.open_sign], dtype=np.float64)

    def settle(self, frame: Frame) -> Frame:
        """Stand still until the arm has caught up with its target."""
        for _ in range(_SETTLE_STEPS):
            before, frame = frame.obs, self.step(self.action())
            moved = np.linalg.norm(frame.obs["tcp_position"] - before["tcp_position"])
            turned = np.linalg.norm(
                rotation_vector(before["tcp_quaternion"], frame.obs["tcp_quaternion"])
            )
            if moved < _STILL_M and turned < _STILL_RAD:
                break
        return frame

    def start(self, scene: int | None = None) -> tuple[Frame, Frame]:
        """What a scene looks like after its reset and after one idle step; looked at once."""
        index = self.scenes[0] if scene is None else scene
        if index not in self._starts:
            self._starts[index] = self.reset(index), self.step(self.action())
        return self._starts[index]

    def moved(self, axis: int) -> tuple[Frame, ...]:
        """Frames of going 5 cm along a base axis in five steps, from rest to rest; gone once."""
        if not self._moves:
            frame = self.settle(self.reset())
            for k in range(3):
                way = np.zeros(3)
                way[k] = WAY_M / 5
                frames = [frame, *(self.step(self.action(way)) for _ in range(5))]
                self._moves[k] = (*frames, self.settle(frames[-1]))
                for _ in range(5):
                    frame = self.step(self.action(-way))
                frame = self.settle(frame)
        return self._moves[axis]

    def solved(self) -> tuple[Frame, ...]:
        """An episode of the expert up to three steps after success, then undone; run once.

        Raises:
            NotTestableError: if there is no expert, or it does not solve the scene.
        """
        if self._solved is None:
            try:
                frames = self._solve(self._expert)
            except NoExpertError as error:
                text = "needs a solved episode, but the environment lacks an expert: give expert="
                raise NotTestableError(text) from error
            self._solved = (*frames, *self._undo(frames))
        if not any(frame.info["success"] for frame in self._solved):
            text = f"the expert does not solve scene {self.scenes[0]} within the horizon"
            raise NotTestableError(text)
        return self._solved

    def _solve(self, expert: Expert) -> list[Frame]:
        frames, since = [self.reset()], 0
        for _ in range(self.core.horizon_steps - 1):
            frames.append(self.step(np.asarray(expert(self.env), dtype=np.float64)))
            now = frames[-1].info
            held = bool(now["grasped"]) and now["target"] is not None
            since = since + 1 if now["success"] and not held else 0
            if since > 3:
                break
        return frames

    def _undo(self, frames: list[Frame]) -> list[Frame]:
        """Take the object off its goal again, or let it go where the goal is to hold it."""
        if frames[-1].info["target"] is None:
            return [self.step(self.action(opening=1)) for _ in range(8)]
        held = [frame for frame in frames if frame.info["grasped"]]
        if not held:
            return []
        last, undone, now = held[-1], [], frames[-1]
        grip = last.obs["tcp_position"] - object_position(last.info)
        for _ in range(15):
            way = object_position(now.info) + grip - now.obs["tcp_position"]
            length = float(np.linalg.norm(way))
            if length < 0.007:
                break
            now = self.step(self.action(way * min(1.0, 0.02 / length), opening=1))
            undone.append(now)
        undone += [self.step(self.action(opening=-1)) for _ in range(4)]
        undone += [self.step(self.action((0.0, 0.0, 0.02), opening=-1)) for _ in range(5)]
        return [*undone, self.step(self.action(opening=-1))]
