"""Registry of the conformance checks, and the functions that run them."""

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
    """The check could not run; the detail says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check and the failure that it guards against.

    Attributes:
        run: raises :class:`~envs.conformance.trial.ViolationError` if the contract is broken.
        why: what goes wrong silently if the check fails.
    """

    run: Callable[[Trial], None]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check.

    Attributes:
        check: its name in :data:`CHECKS`.
        outcome: how it ended.
        detail: what was expected and found, or what was missing; empty if the check passed.
        why: the failure that the check guards against.
    """

    check: str
    outcome: Outcome
    detail: str
    why: str


CHECKS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "attributes": Check(
            run=form.attributes, why="actions are sent to a robot that interprets them differently"
        ),
        "spaces": Check(run=form.spaces, why="actions are scaled and clipped to the wrong bounds"),
        "observation": Check(
            run=form.observation,
            why="the policy receives a dtype, order or range that it was not trained on",
        ),
        "info": Check(run=form.info_values, why="an unknown value is mistaken for False or 0"),
        "object_poses": Check(
            run=form.object_poses, why="distances are measured to the wrong object"
        ),
        "contacts": Check(
            run=form.contacts,
            why="contacts between the robot's own links are reported as collisions",
        ),
        "translation": Check(
            run=motion.translation,
            why="a flipped axis, the wrong frame, or centimetres instead of metres",
        ),
        "rotation": Check(
            run=motion.rotation, why="a flipped rotation, or a rotation about the tool's own axes"
        ),
        "axis_angle": Check(
            run=motion.axis_angle, why="an axis-angle vector is interpreted as Euler angles"
        ),
        "gripper": Check(
            run=motion.gripper, why="the gripper opens when commanded to close, or is not measured"
        ),
        "base_frame": Check(
            run=motion.base_frame, why="world-frame poses are reported as base-frame poses"
        ),
        "picture": Check(run=motion.picture, why="the policy sees a frozen or blank image"),
        "repeatable": Check(
            run=episode.repeatable, why="policies are compared on different scenes"
        ),
        "scenes": Check(run=episode.scene_changes, why="all scene indices give the same scene"),
        "unknown_option": Check(
            run=episode.unknown_options, why="a mistyped option is silently ignored"
        ),
        "unknown_scene": Check(
            run=episode.unknown_scene,
            why="an index beyond the last scene silently repeats another scene",
        ),
        "disturbances": Check(
            run=episode.disturbances, why="an undisturbed episode is counted as a disturbed one"
        ),
        "bad_action": Check(run=episode.bad_action, why="NaN reaches the physics engine"),
        "horizon": Check(run=episode.horizon, why="episodes of different lengths are compared"),
        "aliasing": Check(
            run=episode.aliasing, why="a recorded image or pose is overwritten by later steps"
        ),
        "starts_unsolved": Check(
            run=task.starts_unsolved, why="flags carry over from the previous episode"
        ),
        "goal_distance": Check(
            run=task.goal_distance,
            why="progress is measured to the wrong point or for the wrong phase",
        ),
        "objects_drawn": Check(
            run=task.objects_drawn,
            why="an object is simulated but not rendered, so the policy cannot find it",
        ),
        "grasp_now": Check(run=task.grasp_now, why="a grasp is still reported after it was lost"),
        "held_at_tool": Check(
            run=task.held_at_tool, why="object and tool poses are given in different frames"
        ),
        "contact_of_grasp": Check(
            run=task.contact_of_grasp, why="a grasp is reported as a collision"
        ),
        "success_now": Check(
            run=task.success_now, why="success is still reported after it was undone"
        ),
        "close_twice": Check(
            run=episode.close_twice, why="a failing clean-up hides the original error"
        ),
    }
)
"""Every check by name; the one that closes the environment comes last."""


def run_check(name: str, trial: Trial) -> Finding:
    """Run one check.

    Args:
        name: one of :data:`CHECKS`.
        trial: the environment under test; all checks may share it.

    Raises:
        ValueError: if the check does not exist.
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
    """Run the conformance checks on an environment.

    Args:
        make: makes the environment; called once, or again after a check that closes it.
        expert: action that solves the task, from the environment; its own expert by default.
            Without one the checks that need a solved episode are left untested.
        scenes: scene indices to test; by default four spread over all scenes, including the first.
        tolerance: allowed deviations; by default those that the environment declares.
        only: names of checks; all by default.

    Returns:
        One finding per check, in the order of :data:`CHECKS`.

    Raises:
        ValueError: if ``only`` names a check that does not exist.
    """
    with Trial(make, expert=expert, scenes=scenes, tolerance=tolerance) as trial:
        _ = trial.env  # errors of the constructor are not violations, so they are raised here
        return tuple(run_check(name, trial) for name in (tuple(only) or CHECKS))
