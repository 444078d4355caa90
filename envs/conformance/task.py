"""Task checks: distance, grasp and success describe the current state; objects are rendered."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import permutations
from typing import Final

import numpy as np

from envs.base import FloatArray
from envs.conformance.trial import Frame, NotTestableError, Trial, fail, object_position

__all__ = [
    "contact_of_grasp",
    "goal_distance",
    "grasp_now",
    "held_at_tool",
    "objects_drawn",
    "starts_unsolved",
    "success_now",
]

_LIFTED_M: Final = 0.04
_HELD_M: Final = 0.15


def starts_unsolved(trial: Trial) -> None:
    """No scene starts solved or with the object in the fingers, not even after a solved one."""
    starts = [trial.start(scene) for scene in trial.scenes]
    with suppress(NotTestableError):
        trial.solved()
        starts.append((trial.reset(), trial.step(trial.action())))
    for info in (frame.info for start in starts for frame in start):
        if info["success"] or info["grasped"] or info["wrong_object"]:
            fail(
                f"step {info['elapsed_steps']} of scene {info['scene']}, all idle: "
                f"success {info['success']}, grasped {info['grasped']}, "
                f"wrong_object {info['wrong_object']}"
            )


def _expected_distances(frame: Frame) -> list[float]:
    """Goal distances that the poses allow, metres (docs/metrics.md)."""
    info, tool = frame.info, frame.obs["tcp_position"]
    obj = info["object_poses"][info["object"]][:3]
    if info["target"] is None:
        return [float(np.linalg.norm(tool - obj))]
    goal = info["object_poses"][info["target"]][:3]
    tool_goal, object_goal = np.linalg.norm(tool - goal), np.linalg.norm(obj - goal)
    allowed = []
    if info["grasped"]:
        allowed.append(float(tool_goal))
    if info["success"]:
        allowed.append(float(object_goal))
    return allowed or [float(np.linalg.norm(tool - obj) + object_goal)]


def goal_distance(trial: Trial) -> None:
    """Goal distance is what the poses give: by phase of the task, in metres."""
    frames = [trial.start(scene)[0] for scene in trial.scenes]
    with suppress(NotTestableError):
        frames += trial.solved()
    if all(frame.info["goal_distance"] is None for frame in frames):
        text = "this task does not report a goal distance"
        raise NotTestableError(text)
    for frame in frames:
        reported, allowed = frame.info["goal_distance"], _expected_distances(frame)
        if reported is None:
            continue
        if min(abs(reported - value) for value in allowed) > trial.tolerance.goal_m:
            info = frame.info
            wanted = " or ".join(f"{value:.3f}" for value in allowed)
            fail(
                f"goal_distance is {reported:.3f} m at step {info['elapsed_steps']} of scene "
                f"{info['scene']}, the poses give {wanted} m (grasped {info['grasped']}, "
                f"success {info['success']})"
            )


def _release(frames: tuple[Frame, ...]) -> int:
    """Index of the first frame in which the object is no longer held after a grasp."""
    held = [bool(frame.info["grasped"]) for frame in frames]
    if True not in held:
        text = "the expert never held the object"
        raise NotTestableError(text)
    first = held.index(True)
    return held.index(False, first) if False in held[first:] else len(frames)


def grasp_now(trial: Trial) -> None:
    """Grasped is true while the fingers carry the object, and false once they let go."""
    frames = trial.solved()
    if all(frame.info["grasped"] is None for frame in frames):
        text = "this task does not say whether the object is held"
        raise NotTestableError(text)
    height = object_position(frames[0].info)[2]
    lifted = [frame for frame in frames if _is_lifted(frame, height)]
    if lifted and not any(frame.info["grasped"] for frame in lifted):
        fail("the tool lifted the object off the table, but grasped was never true")
    open_again = [frame for frame in frames if frame.obs["gripper"][0] > 0.95]
    late = [frame for frame in open_again if frame.info["grasped"]]
    if late:
        step = late[0].info["elapsed_steps"]
        fail(f"at step {step} the fingers are wide open and grasped is still true")
    if lifted and _release(frames) == len(frames):
        fail("grasped stayed true to the end, after the object was let go")


def _is_lifted(frame: Frame, height: float) -> bool:
    """Whether the object hangs in the air near the tool."""
    obj = object_position(frame.info)
    near = np.linalg.norm(obj - frame.obs["tcp_position"]) < _HELD_M
    return bool(near and obj[2] - height > _LIFTED_M)


def held_at_tool(trial: Trial) -> None:
    """While it is held the object is at the tool: both are given in one frame."""
    for frame in trial.solved():
        gap = float(np.linalg.norm(object_position(frame.info) - frame.obs["tcp_position"]))
        if frame.info["grasped"] and gap > _HELD_M:
            fail(
                f"at step {frame.info['elapsed_steps']} {frame.info['object']!r} is held, yet "
                f"{gap:.2f} m from the tool: not in the base frame?"
            )


def success_now(trial: Trial) -> None:
    """Success is taken back when the object is taken off its goal again."""
    frames = trial.solved()
    done = next(k for k, frame in enumerate(frames) if frame.info["success"])
    if frames[0].info["target"] is None:
        if frames[-1].info["success"] and not frames[-1].info["grasped"]:
            fail("the object was let go again and success is still true")
        return
    height = object_position(frames[done].info)[2]
    lifted = [frame for frame in frames[done:] if _is_lifted(frame, height)]
    if not lifted:
        text = "the object could not be taken off its goal again"
        raise NotTestableError(text)
    if any(frame.info["success"] for frame in lifted):
        step = next(f for f in lifted if f.info["success"]).info["elapsed_steps"]
        fail(f"at step {step} the object hangs in the air over its goal and success is still true")


def contact_of_grasp(trial: Trial) -> None:
    """While it is held, the object appears in the contacts under the name it has in poses."""
    held = [frame.info for frame in trial.solved() if frame.info["grasped"]]
    reported = [info for info in held if info["contacts"] is not None]
    if not reported:
        text = "contacts are not reported while the object is held"
        raise NotTestableError(text)
    for info in reported:
        names = {name for contact in info["contacts"] or () for name in contact[:2]}
        if info["object"] not in names:
            fail(f"{info['object']!r} is held, yet only these touch: {', '.join(sorted(names))}")


def objects_drawn(trial: Trial) -> None:
    """The object is inside the image, and the image looks different where it stands."""
    pixel_of: Callable[[FloatArray], FloatArray] | None = getattr(trial.core, "pixel_of", None)
    if pixel_of is None:
        text = "needs pixel_of(position) of the environment"
        raise NotTestableError(text)
    starts: list[tuple[int, Frame, FloatArray, list[FloatArray]]] = []
    for scene in trial.scenes:
        frame = trial.start(scene)[0]
        at = np.asarray(pixel_of(object_position(frame.info)))
        if np.abs(at).max() >= 1.0:
            fail(f"{frame.info['object']!r} of scene {scene} is outside the image: {at}")
        others = [np.asarray(pixel_of(p[:3])) for p in frame.info["object_poses"].values()]
        starts.append((scene, frame, at, others))
    compared = 0
    for (scene, frame, at, _), (other, without, _, others) in permutations(starts, 2):
        if min(float(np.linalg.norm(at - there)) for there in others) < 0.15:
            continue
        compared += 1
        change = np.abs(_patch(frame, at) - _patch(without, at)).mean()
        if change < 3.0:
            fail(
                f"{frame.info['object']!r} stands at {at.round(2)} in scene {scene} and not in "
                f"{other}, yet the images look alike there ({change:.1f} of 255): not drawn?"
            )
    if not compared:
        text = "the objects of these scenes stand too close to each other's positions"
        raise NotTestableError(text)


def _patch(frame: Frame, at: FloatArray) -> FloatArray:
    """The image around a point given in [-1, 1], a fiftieth of its width to each side."""
    image = frame.obs["image"]
    height, width = image.shape[:2]
    column, row = (round((at[k] + 1) / 2 * (size - 1)) for k, size in ((0, width), (1, height)))
    reach = max(1, width // 100)
    rows, columns = (
        slice(max(0, row - reach), row + reach + 1),
        slice(max(0, column - reach), column + reach + 1),
    )
    return image[rows, columns].astype(np.float64)
