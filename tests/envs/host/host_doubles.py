"""Simulators that break in all ways, for the tests of the host; they need numpy only."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np

from envs.base import Contact
from envs.robot import ROBOTS
from envs.tolerance import Tolerance

HIGH = np.array([0.05, 0.05, 0.05, 0.25, 0.25, 0.25, 1.0], dtype=np.float32)
BROKEN_SCENE, BROKEN_STEP = 2, 3


class ReachEnv:
    """A tool that moves by its action toward a point; solved within 3 cm of it."""

    control_dt_s = 0.2
    disturbances = ("wind",)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012  as gymnasium has it
    render_mode = "rgb_array"
    robot = ROBOTS["google_robot"]
    scene_count = None
    task = "reach"
    tolerance = Tolerance(reach_m=0.02)

    def __init__(self, *, horizon_steps: int = 12, size: int = 160) -> None:
        self.horizon_steps = horizon_steps
        self.action_space = SimpleNamespace(low=-HIGH, high=HIGH, dtype=HIGH.dtype)
        self.size = size
        self.scene = self.elapsed = 0
        self.goal = self.tool = np.zeros(3)

    @property
    def unwrapped(self) -> ReachEnv:
        return self

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        given = dict(options or {})
        self.scene = given.pop("scene", 0)
        if given:
            msg = f"unknown reset option(s) {', '.join(given)}; known: scene"
            raise ValueError(msg)
        self.elapsed = 0
        self.goal = np.array([0.3, 0.0, 0.1 + 0.01 * self.scene])
        self.tool = np.array([0.3, 0.1, 0.2])
        return self._seen()

    def step(self, action: Any) -> Any:
        if (self.scene, self.elapsed) == (BROKEN_SCENE, BROKEN_STEP):
            self.break_down()
        self.tool = self.tool + np.clip(action, -HIGH, HIGH)[:3]
        self.elapsed += 1
        observation, info = self._seen()
        reward = np.float32(info["success"])
        return observation, reward, False, self.elapsed >= self.horizon_steps, info

    def expert_action(self) -> Any:
        move = np.clip(self.goal - self.tool, -0.03, 0.03)
        return np.concatenate([move, np.zeros(3), [1.0]])

    def render(self) -> Any:
        return np.full((self.size, self.size, 3), self.elapsed, dtype=np.uint8)

    def close(self) -> None:
        pass

    def break_down(self) -> None:
        """Whatever a subclass does at one step of one scene."""

    def _seen(self) -> Any:
        rng = np.random.default_rng(1000 * self.scene + self.elapsed)
        distance = float(np.linalg.norm(self.tool - self.goal))
        observation = {
            "image": rng.integers(0, 256, (self.size, self.size, 3)).astype(np.uint8),
            "tcp_position": self.tool.copy(),
            "tcp_quaternion": np.array([1.0, 0.0, 0.0, 0.0]),
            "gripper": np.array([1.0]),
            "joint_positions": np.zeros(8),
        }
        info = {
            "instruction": f"reach goal {self.scene}",
            "task": self.task,
            "scene": self.scene,
            "disturbance": None,
            "success": np.bool_(distance < 0.03),
            "goal_distance": distance,
            "elapsed_steps": self.elapsed,
            "object_poses": {"goal": np.zeros(7)},
            "contacts": (Contact("finger", "goal", 1.5),),
            "simulator": self,
            "pydantic_is_here": importlib.util.find_spec("pydantic") is not None,
        }
        return observation, info


class RaisingEnv(ReachEnv):
    def break_down(self) -> None:
        msg = "the solver diverged"
        raise FloatingPointError(msg)


class SegfaultingEnv(ReachEnv):
    def break_down(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class SleepingEnv(ReachEnv):
    def break_down(self) -> None:
        time.sleep(1e6)


class SpinningEnv(ReachEnv):
    def break_down(self) -> None:
        while True:
            pass


class ExitingEnv(ReachEnv):
    def break_down(self) -> None:
        sys.stderr.write("licence expired\n")
        sys.stderr.flush()
        os._exit(7)


class TalkingEnv(ReachEnv):
    """Prints to stdout far more than a pipe holds."""

    def break_down(self) -> None:
        for line in range(20_000):
            sys.stdout.write(f"frame {line}\n")


class ParentEnv(ReachEnv):
    """Starts a process of its own, which holds whatever it inherits."""

    def __init__(self) -> None:
        super().__init__()
        self.helper = subprocess.Popen(["sleep", "1000"], close_fds=False)

    def break_down(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class UnmakeableEnv(ReachEnv):
    def __init__(self) -> None:
        msg = "no GPU for the simulator"
        raise RuntimeError(msg)


class DoomedEnv(ReachEnv):
    """Breaks once; then cannot be made for as long as a file exists."""

    def __init__(self) -> None:
        super().__init__()
        if os.path.exists(os.environ["HOST_DOUBLES_BROKEN"]):  # noqa: PTH110
            msg = "the device is lost"
            raise RuntimeError(msg)

    def break_down(self) -> None:
        open(os.environ["HOST_DOUBLES_BROKEN"], "w").close()  # noqa: PTH123
        os.kill(os.getpid(), signal.SIGABRT)
