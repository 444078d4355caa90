"""Motion checks: the tool moves as commanded, in the declared frame, unit and sign."""

from __future__ import annotations

from typing import Final

import numpy as np

from envs.base import FloatArray
from envs.conformance.trial import WAY_M, NotTestableError, Trial, fail
from envs.pose import between, inverse, multiply, rotation_vector

__all__ = ["axis_angle", "base_frame", "gripper", "picture", "rotation", "translation"]

_TURN_RAD: Final = 0.2
_AXES: Final = "xyz"


def translation(trial: Trial) -> None:
    """+5 cm along each base axis moves the tool by +5 cm along that axis only."""
    for axis in range(3):
        start, *_, end = trial.moved(axis)
        moved = end.obs["tcp_position"] - start.obs["tcp_position"]
        across = np.abs(np.delete(moved, axis)).max()
        wrong = abs(moved[axis] - WAY_M) > trial.tolerance.reach_m
        if wrong or across > trial.tolerance.stray_m:
            fail(f"+5 cm along {_AXES[axis]} moved the tool by {_text(moved * 100)} cm")


def rotation(trial: Trial) -> None:
    """+0.2 rad about each base axis turns the tool by +0.2 rad about that axis only."""
    start = trial.settle(trial.reset())
    for axis in (2, 0, 1):
        rotvec = np.zeros(3)
        rotvec[axis] = _TURN_RAD / 2
        end = trial.settle([trial.step(trial.action(rotvec=rotvec)) for _ in range(2)][-1])
        turned = rotation_vector(start.obs["tcp_quaternion"], end.obs["tcp_quaternion"])
        wanted = np.zeros(3)
        wanted[axis] = _TURN_RAD
        if np.abs(turned - wanted).max() > trial.tolerance.turn_rad:
            fail(f"+0.2 rad about {_AXES[axis]} turned the tool by {_text(turned)} rad")
        start = trial.settle([trial.step(trial.action(rotvec=-rotvec)) for _ in range(2)][-1])


def axis_angle(trial: Trial) -> None:
    """A rotation about an oblique axis, undone by its negative, ends where it began.

    An axis-angle vector and its negative undo each other; Euler angles and their negatives do not:
    each pair then leaves the product of the two angles, here 0.04 rad, which five pairs add up.
    An arm that makes less than half of a rotation in one step may leave as much by its lag alone.
    """
    rotvec = np.array([0.0, 0.2, 0.2])
    start = trial.settle(trial.reset())
    shares = []
    for _ in range(5):
        there = trial.step(trial.action(rotvec=rotvec)).obs["tcp_quaternion"]
        end = trial.step(trial.action(rotvec=-rotvec))
        made = rotation_vector(there, end.obs["tcp_quaternion"])
        shares.append(float(np.linalg.norm(made) / np.linalg.norm(rotvec)))
    end = trial.settle(end)
    drift = rotation_vector(start.obs["tcp_quaternion"], end.obs["tcp_quaternion"])
    if np.linalg.norm(drift) > 0.1 and max(shares) < 0.5:
        text = f"the arm makes at most {max(shares):.0%} of a rotation in one step"
        raise NotTestableError(text)
    if np.linalg.norm(drift) > 0.1:
        fail(
            f"five rotations by {_text(rotvec)} rad and back left {_text(drift)} rad: "
            "the rotation is not read as an axis-angle vector"
        )


def gripper(trial: Trial) -> None:
    """Closing makes the measured opening small, opening makes it large, as RobotSpec signs them."""
    frame = trial.reset()
    for opening, name in ((-1, "closing"), (1, "opening")):
        before = frame
        for _ in range(8):
            frame = trial.step(trial.action(opening=opening))
        reached = float(frame.obs["gripper"][0])
        if (reached > 0.2) if opening < 0 else (reached < 0.8):
            command = trial.action(opening=opening)[6]
            fail(
                f"8 steps of {name} ({command:+.0f}) took the measured opening from "
                f"{before.obs['gripper'][0]:.2f} to {reached:.2f}"
            )


def base_frame(trial: Trial) -> None:
    """Tool poses in world and base frame differ by one pose, that of the base; z points up."""
    frames = [frame for axis in range(3) for frame in trial.moved(axis)]
    bases = [
        multiply(
            frame.info["tcp_pose_world"],
            inverse([*frame.obs["tcp_position"], *frame.obs["tcp_quaternion"]]),
        )
        for frame in frames
    ]
    for base in bases[1:]:
        change = between(bases[0], base)
        rotvec = rotation_vector(bases[0][3:], base[3:])
        if np.linalg.norm(change[:3]) > trial.tolerance.frame_m or np.linalg.norm(rotvec) > 0.01:
            fail(
                "the base that tcp_pose_world and tcp_position imply moved by "
                f"{_text(change[:3] * 1000)} mm and rotated by {_text(rotvec)} rad"
            )
    start, *_, end = trial.moved(2)
    rise = end.info["tcp_pose_world"][2] - start.info["tcp_pose_world"][2]
    if rise < (WAY_M - trial.tolerance.reach_m) / 2:  # an arm may fall short by that much
        fail(f"+5 cm along z raised the tool by {rise * 100:.1f} cm in the world")


def picture(trial: Trial) -> None:
    """The image is not blank and changes when the arm moves."""
    start, *_, end = trial.moved(2)
    before, after = start.obs["image"].astype(int), end.obs["image"].astype(int)
    if before.std() < 2.0:
        fail(f"the image is a single colour: standard deviation {before.std():.2f} of 255")
    changed = float((np.abs(after - before).max(axis=2) > 16).mean())
    if changed < 0.002:
        fail(f"the arm rose by 5 cm and {changed:.2%} of the image changed")


def _text(values: FloatArray) -> str:
    return "(" + ", ".join(f"{value:+.3f}" for value in values) + ")"
