"""Form checks: attributes, spaces, keys, types, and units that a single value reveals."""

from __future__ import annotations

from typing import Any, get_type_hints

import gymnasium as gym
import numpy as np

from envs.base import Contact, Info
from envs.conformance.trial import Trial, fail
from envs.robot import RobotSpec

__all__ = ["attributes", "contacts", "info_values", "object_poses", "observation", "spaces"]

_ARRAYS = {
    "tcp_position": (3,),
    "tcp_quaternion": (4,),
    "gripper": (1,),
}
_SCALARS: dict[str, tuple[type, ...]] = {
    "instruction": (str,),
    "task": (str,),
    "scene": (int,),
    "disturbance": (str, type(None)),
    "elapsed_steps": (int,),
    "success": (bool,),
    "wrong_object": (bool, type(None)),
    "grasped": (bool, type(None)),
    "goal_distance": (float, type(None)),
    "object": (str,),
    "target": (str, type(None)),
}
_IMPOSSIBLE_FORCE_N = 5e3


def attributes(trial: Trial) -> None:
    """Robot, control period and horizon are declared and agree with each other."""
    core = trial.core
    missing = [
        name
        for name in ("robot", "control_dt_s", "horizon_steps", "disturbances", "scene_count")
        if not hasattr(core, name)
    ]
    if missing:
        fail(f"attributes are missing: {', '.join(missing)}")
    if not isinstance(core.robot, RobotSpec):
        fail(f"robot must be an envs.robot.RobotSpec, got {core.robot!r}")
    if abs(core.control_dt_s - core.robot.control_dt_s) > 1e-9:
        fail(f"control_dt_s is {core.control_dt_s}, its robot's {core.robot.control_dt_s}")
    if not isinstance(core.horizon_steps, int) or core.horizon_steps < 1:
        fail(f"horizon_steps must be an int >= 1, got {core.horizon_steps!r}")
    if core.scene_count is not None and core.scene_count < 1:
        fail(f"scene_count must be None or >= 1, got {core.scene_count!r}")


def spaces(trial: Trial) -> None:
    """Actions are a box of 7 around zero; observations lie in their space."""
    space = trial.env.action_space
    if not isinstance(space, gym.spaces.Box) or space.shape != (7,):
        fail(f"action_space must be a Box of shape (7,), got {space}")
    if not (np.all(space.low[:6] < 0) and np.all(space.high[:6] > 0)):
        fail(f"zero motion must lie inside the action space {space.low} … {space.high}")
    for frame, call in zip(trial.start(), ("reset", "step"), strict=True):
        obs: Any = frame.obs
        if not trial.env.observation_space.contains(obs):
            fail(f"observation_space does not contain what {call} returned")


def observation(trial: Trial) -> None:
    """Every entry has its shape and type, quaternions have length 1, the opening is in [0, 1]."""
    for frame in trial.start():
        obs: Any = frame.obs
        image = obs["image"]
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
            fail(f"image must be (H, W, 3) uint8, got {image.shape} {image.dtype}")
        for name, shape in {**_ARRAYS, "joint_positions": (trial.core.robot.joint_count,)}.items():
            value = obs[name]
            if value.shape != shape or value.dtype != np.float64:
                fail(f"{name} must be {shape} float64, got {value.shape} {value.dtype}")
            if not np.isfinite(value).all():
                fail(f"{name} is not finite: {value}")
        if abs(np.linalg.norm(obs["tcp_quaternion"]) - 1.0) > 1e-4:
            fail(f"tcp_quaternion has length {np.linalg.norm(obs['tcp_quaternion'])}, not 1")
        if not 0.0 <= obs["gripper"][0] <= 1.0:
            fail(f"gripper must be an opening in [0, 1], got {obs['gripper'][0]}")


def info_values(trial: Trial) -> None:
    """Every key is there with its type; unknown is None where the contract allows it."""
    for elapsed, frame in enumerate(trial.start()):
        info: Any = frame.info
        missing = sorted(set(get_type_hints(Info)) - set(info))
        if missing:
            fail(f"info lacks {', '.join(missing)}")
        for name, kinds in _SCALARS.items():
            value = info[name]
            right = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
            if not right:
                allowed = " or ".join(kind.__name__ for kind in kinds)
                fail(f"info[{name!r}] must be {allowed}, got {value!r} ({type(value).__name__})")
        if info["goal_distance"] is not None and not np.isfinite(info["goal_distance"]):
            fail(f"goal_distance is {info['goal_distance']}; unknown is None")
        if info["elapsed_steps"] != elapsed:
            fail(f"elapsed_steps is {info['elapsed_steps']} after {elapsed} step(s)")
        if info["scene"] != trial.scenes[0] or info["disturbance"] is not None:
            fail(
                f"asked for scene {trial.scenes[0]} undisturbed, info reports "
                f"{info['scene']}, {info['disturbance']}"
            )
        if not info["instruction"].strip() or not info["task"].strip():
            fail(f"instruction {info['instruction']!r} or task {info['task']!r} is empty")


def _is_pose(pose: Any) -> bool:
    return (
        isinstance(pose, np.ndarray)
        and pose.shape == (7,)
        and bool(np.isfinite(pose).all())
        and abs(float(np.linalg.norm(pose[3:])) - 1.0) < 1e-3
    )


def object_poses(trial: Trial) -> None:
    """Poses have 7 numbers with a unit quaternion; object and target are among their names."""
    for scene in trial.scenes:
        info = trial.start(scene)[0].info
        poses = {**info["object_poses"], "tcp_pose_world": info["tcp_pose_world"]}
        for name, pose in poses.items():
            if not _is_pose(pose):
                fail(f"pose of {name!r} must be 7 finite numbers, unit quaternion, got {pose!r}")
        for role in (info["object"], info["target"]):
            if role is not None and role not in info["object_poses"]:
                fail(f"{role!r} is not one of object_poses: {', '.join(info['object_poses'])}")
        if info["object"] == info["target"]:
            fail(f"object and target are both {info['object']!r}")


def contacts(trial: Trial) -> None:
    """Contacts are named pairs with a possible force; neighbouring links do not count."""
    for frame in (*trial.start(), *trial.moved(2)):
        _check_contacts(frame.info["contacts"])


def _check_contacts(found: tuple[Contact, ...] | None) -> None:
    if found is None:
        return
    if not isinstance(found, tuple) or not all(isinstance(item, Contact) for item in found):
        fail(f"contacts must be None or a tuple of envs.base.Contact, got {found!r}")
    for contact in found:
        if not (np.isfinite(contact.force_n) and 0.0 <= contact.force_n < _IMPOSSIBLE_FORCE_N):
            fail(f"{contact} while the arm moves freely: links of the robot pressed together?")
