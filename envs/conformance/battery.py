"""The checks by name, and running them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from envs.base import RobotEnv
from envs.conformance import episode, form, motion, task
from envs.conformance.trial import Expert, NotTestableError, Trial, ViolationError
from envs.tolerance import Tolerance
from monitor.errors import unknown_name

__all__ = ["CHECKS", "Check", "Finding", "Outcome", "check_env", "run_check"]


class Outcome(str, Enum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    UNTESTED = "untested"
    """What it needs is not there; the detail says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check and what it protects from.

    Attributes:
        run: raises :class:`~envs.conformance.trial.ViolationError` if the contract is broken.
        why: what goes wrong silently where it fails.
    """

    run: Callable[[Trial], None]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found.

    Attributes:
        check: its name in :data:`CHECKS`.
        outcome: how it ended.
        detail: what was expected and found, or what was missing; empty when it passed.
        why: what it protects from.
    """

    check: str
    outcome: Outcome
    detail: str
    why: str


CHECKS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "attributes": Check(
            run=form.attributes, why="an action is sent to a robot that reads it otherwise"
        ),
        "spaces": Check(run=form.spaces, why="actions are scaled and clipped by a wrong box"),
        "observation": Check(
            run=form.observation, why="a policy is fed another type, order or range than it knows"
        ),
        "info": Check(run=form.info_values, why="a missing truth is taken for False or 0"),
        "object_poses": Check(
            run=form.object_poses, why="distances are measured to the wrong object"
        ),
        "contacts": Check(
            run=form.contacts, why="a robot's own links are reported as collisions all the time"
        ),
        "translation": Check(
            run=motion.translation, why="a flipped axis, another frame or centimetres for metres"
        ),
        "rotation": Check(
            run=motion.rotation, why="a flipped rotation, or one about the tool's own axes"
        ),
        "axis_angle": Check(
            run=motion.axis_angle, why="an axis-angle vector that is read as Euler angles"
        ),
        "gripper": Check(
            run=motion.gripper, why="a gripper that opens when told to close, or is not measured"
        ),
        "base_frame": Check(
            run=motion.base_frame, why="poses in the world frame that are called base frame"
        ),
        "picture": Check(run=motion.picture, why="a policy that sees a frozen or blank picture"),
        "repeatable": Check(
            run=episode.repeatable, why="two policies compared on scenes that are not the same"
        ),
        "scenes": Check(
            run=episode.scene_changes, why="many scenes that are one and the same scene"
        ),
        "unknown_option": Check(
            run=episode.unknown_options, why="a mistyped option that changes nothing"
        ),
        "unknown_scene": Check(
            run=episode.unknown_scene, why="an index beyond the last scene that repeats others"
        ),
        "disturbances": Check(
            run=episode.disturbances, why="a clean episode that is counted as a disturbed one"
        ),
        "bad_action": Check(run=episode.bad_action, why="NaN that reaches the physics"),
        "horizon": Check(
            run=episode.horizon, why="episodes of other lengths than the ones compared with"
        ),
        "aliasing": Check(
            run=episode.aliasing, why="a recorded picture or pose that later steps overwrite"
        ),
        "starts_unsolved": Check(
            run=task.starts_unsolved, why="flags left over from the last episode"
        ),
        "goal_distance": Check(
            run=task.goal_distance, why="progress measured to a wrong point or phase"
        ),
        "objects_drawn": Check(
            run=task.objects_drawn, why="an object with physics but no picture: nobody can find it"
        ),
        "grasp_now": Check(run=task.grasp_now, why="a grasp that is remembered after it was lost"),
        "held_at_tool": Check(
            run=task.held_at_tool, why="objects and tool that are given in different frames"
        ),
        "contact_of_grasp": Check(
            run=task.contact_of_grasp, why="a grasp that is reported as a collision"
        ),
        "success_now": Check(
            run=task.success_now, why="a success that is remembered after it was undone"
        ),
        "close_twice": Check(
            run=episode.close_twice, why="a clean-up that fails and hides the real error"
        ),
    }
)
"""Every check by name, in an order that leaves the closing one to the end."""


def run_check(name: str, trial: Trial) -> Finding:
    """Make one check.

    Args:
        name: one of :data:`CHECKS`.
        trial: what is tested; it may be shared by all checks.

    Raises:
        ValueError: if there is no such check.
    """
    if name not in CHECKS:
        raise ValueError(unknown_name("check", name, CHECKS))
    check = CHECKS[name]
    outcome, detail = Outcome.PASSED, ""
    try:
        check.run(trial)
    except ViolationError as error:
        outcome, detail = Outcome.FAILED, str(error)
    except NotTestableError as error:
        outcome, detail = Outcome.UNTESTED, str(error)
    except Exception as error:
        outcome, detail = Outcome.FAILED, f"raised {type(error).__name__}: {error}"
    return Finding(check=name, outcome=outcome, detail=detail, why=check.why)


def check_env(
    make: Callable[[], RobotEnv],
    *,
    expert: Expert | None = None,
    scenes: tuple[int, ...] = (),
    tolerance: Tolerance | None = None,
    only: Iterable[str] = (),
) -> tuple[Finding, ...]:
    """Put an environment through the battery.

    Args:
        make: makes the environment; called once, or again after a check that closes it.
        expert: action that solves the task, from the environment; its own expert by default.
            Without one the checks that need a solved episode are left untested.
        scenes: indices to look at; by default four from all over, the first among them.
        tolerance: how exact the simulator must be; by default as the environment says itself.
        only: names of checks; all by default.

    Returns:
        One finding a check, in the order of :data:`CHECKS`.

    Raises:
        ValueError: if ``only`` names a check that does not exist.
    """
    with Trial(make, expert=expert, scenes=scenes, tolerance=tolerance) as trial:
        _ = (
            trial.env
        )  # what cannot be made breaks no rule: whatever making it raises is raised here
        return tuple(run_check(name, trial) for name in (tuple(only) or CHECKS))
