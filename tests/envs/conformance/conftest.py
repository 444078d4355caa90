"""A small kinematic table top that keeps the contract; wrong doubles change one thing each."""

from __future__ import annotations

from typing import Any, Final

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

from envs.base import Contact
from envs.pose import multiply, turned
from envs.robot import ROBOTS

FloatArray = NDArray[np.float64]

BASE: Final = np.array([0.147, 0.028, 0.87, 0.0, 0.0, 0.0, 1.0])
DOWN: Final = np.array([0.5**0.5, 0.0, 0.5**0.5, 0.0])
HIGH: Final = np.array([0.05, 0.05, 0.05, 0.3, 0.3, 0.3, 1.0], dtype=np.float32)
SIZE: Final = 64


class ToyEnv(gym.Env[Any, Any]):
    """A tool that goes where it is told and carries what it closes on; no physics."""

    robot = ROBOTS["widowx"]
    control_dt_s = 0.2
    horizon_steps = 60
    disturbances: tuple[str, ...] = ("heavy",)
    scene_count: int | None = 6
    render_mode = None
    base = BASE

    def __init__(self) -> None:
        self.action_space = gym.spaces.Box(-HIGH, HIGH, dtype=np.float32)
        box = gym.spaces.Box
        self.observation_space = gym.spaces.Dict(
            {
                "image": box(0, 255, (SIZE, SIZE, 3), np.uint8),
                "tcp_position": box(-9, 9, (3,), np.float64),
                "tcp_quaternion": box(-2, 2, (4,), np.float64),
                "gripper": box(-1, 1, (1,), np.float64),
                "joint_positions": box(-9, 9, (8,), np.float64),
            }
        )
        self.elapsed = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        given = self.read_options(dict(options or {}))
        self.scene, self.disturbance = given.get("scene", 0), given.get("disturbance")
        rng = self.scene_rng(seed)
        self.elapsed, self.held, self.opening = 0, False, 1.0
        self.tool, self.orientation = np.array([0.29, 0.0, 0.14]), DOWN.copy()
        self.obj = np.array([*rng.uniform((0.24, 0.05), (0.36, 0.15)), 0.015])
        self.goal = np.array([*rng.uniform((0.24, -0.12), (0.36, -0.06)), 0.0])
        return self.observe()

    def scene_rng(self, seed: int | None) -> np.random.Generator:
        return np.random.default_rng(self.scene)

    def read_options(self, given: dict[str, Any]) -> dict[str, Any]:
        odd = set(given) - {"scene", "disturbance"}
        if odd:
            msg = f"unknown option(s) {odd}; known: scene, disturbance"
            raise ValueError(msg)
        if not 0 <= given.get("scene", 0) < 6:
            msg = f"scene {given['scene']} is none of 0 to 5"
            raise ValueError(msg)
        if given.get("disturbance") not in (None, "heavy"):
            msg = f"unknown disturbance {given['disturbance']}; known: heavy"
            raise ValueError(msg)
        return given

    def read_action(self, action: Any) -> FloatArray:
        wanted = np.asarray(action, dtype=np.float64)
        if wanted.shape != (7,) or not np.isfinite(wanted).all():
            msg = f"action must be 7 finite numbers, got {action}"
            raise ValueError(msg)
        return np.clip(wanted, -HIGH, HIGH)

    def step(self, action: Any) -> Any:
        wanted = self.read_action(action)
        self.move(wanted[:3])
        self.rotate(wanted[3:6])
        self.squeeze(wanted[6])
        self.elapsed += 1
        obs, info = self.observe()
        return obs, float(info["success"]), self.is_over(info), self.is_late(), info

    def is_over(self, info: dict[str, Any]) -> bool:
        return False

    def is_late(self) -> bool:
        return self.elapsed >= self.horizon_steps

    def move(self, way: FloatArray) -> None:
        self.tool = self.tool + way

    def rotate(self, vector: FloatArray) -> None:
        self.orientation = turned(self.orientation, vector)

    def squeeze(self, command: float) -> None:
        self.opening = float(np.clip(self.opening + 0.25 * command, 0.0, 1.0))
        near = float(np.linalg.norm(self.obj - self.tool)) < 0.02
        self.held = self.opening < 0.5 and (self.held or near)
        if self.held:
            self.obj = self.tool.copy()
        else:
            self.obj = np.array([*self.obj[:2], 0.023 if self.over_goal() else 0.015])

    def over_goal(self) -> bool:
        return float(np.linalg.norm(self.obj[:2] - self.goal[:2])) < 0.05

    def success(self) -> bool:
        return self.over_goal() and self.obj[2] < 0.03

    def grasped(self) -> bool:
        return self.held

    def goal_distance(self) -> float | None:
        there = float(np.linalg.norm(self.obj - self.goal))
        if self.grasped():
            return float(np.linalg.norm(self.tool - self.goal))
        return there if self.success() else float(np.linalg.norm(self.tool - self.obj)) + there

    def contacts(self) -> tuple[Contact, ...] | None:
        return (Contact("red cube", "left_finger", 3.0),) if self.held else ()

    def poses(self) -> dict[str, FloatArray]:
        upright = [1.0, 0.0, 0.0, 0.0]
        things = {"red cube": self.obj, "plate": self.goal}
        return {name: np.array([*at, *upright]) for name, at in things.items()}

    def tool_in_world(self) -> FloatArray:
        return multiply(BASE, [*self.tool, *self.orientation])

    def pixel_of(self, position: FloatArray) -> FloatArray:
        return np.array([(position[0] - 0.3) * 8, (position[1] - position[2]) * 5])

    def drawn(self) -> list[tuple[FloatArray, tuple[int, int, int]]]:
        return [
            (self.goal, (200, 200, 200)),
            (self.obj, (200, 20, 20)),
            (self.tool, (20, 20, 20)),
        ]

    def image(self) -> NDArray[np.uint8]:
        picture = np.full((SIZE, SIZE, 3), (110, 80, 50), dtype=np.uint8)
        for position, colour in self.drawn():
            column, row = ((self.pixel_of(position) + 1) / 2 * (SIZE - 1)).round().astype(int)
            picture[max(0, row - 3) : row + 4, max(0, column - 3) : column + 4] = colour
        return picture

    def observe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        obs = {
            "image": self.image(),
            "tcp_position": self.tool.copy(),
            "tcp_quaternion": self.orientation.copy(),
            "gripper": np.array([self.opening]),
            "joint_positions": np.zeros(8),
        }
        info = {
            "instruction": "put the red cube on the plate",
            "task": "put-on",
            "scene": self.scene,
            "disturbance": self.disturbance,
            "elapsed_steps": self.elapsed,
            "success": bool(self.success()),
            "wrong_object": None,
            "grasped": bool(self.grasped()),
            "goal_distance": self.goal_distance(),
            "object": "red cube",
            "target": "plate",
            "object_poses": self.poses(),
            "tcp_pose_world": self.tool_in_world(),
            "contacts": self.contacts(),
        }
        return obs, info


def toy_expert(env: Any) -> FloatArray:
    """Go to the object, close, lift, go over the goal, lower, open, rise."""
    core = env.unwrapped
    goal, opening = core.obj, 1.0
    if core.success() and not core.held:
        goal = np.array([*core.tool[:2], 0.15])
    elif core.held:
        far = float(np.linalg.norm(core.tool[:2] - core.goal[:2])) > 0.01
        goal = np.array([*core.goal[:2], 0.1 if far else 0.02])
        opening = -1.0 if far or core.tool[2] > 0.025 else 1.0
        if far and core.tool[2] < 0.08:
            goal = np.array([*core.tool[:2], 0.1])
    elif np.linalg.norm(core.tool - core.obj) < 0.01:
        opening = -1.0
    way = goal - core.tool
    way *= min(1.0, 0.03 / max(float(np.linalg.norm(way)), 1e-9))
    return np.array([*way, 0.0, 0.0, 0.0, opening])


@pytest.fixture(scope="session")
def toy() -> type[ToyEnv]:
    return ToyEnv


@pytest.fixture(scope="session")
def expert() -> Any:
    return toy_expert
