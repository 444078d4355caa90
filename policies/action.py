"""Convert the actions of a published policy to those of a robot of SimplerEnv.

The policies speak of metres, Euler angles and an opening in [0, 1]; the simulator takes metres, an
axis-angle vector and a gripper number whose meaning depends on the robot. Leaving out a part of
this gives plausible motion and no success.

Source: ``simpler_env/policies`` of SimplerEnv and of its public forks for OpenVLA, SpatialVLA and
CogACT; the facts, not the code.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike

from envs.robot import ROBOTS, GripperCommand, RobotSpec
from monitor.errors import ConfigError, unknown_name
from policies.base import FloatArray, PolicyOutput
from policies.ensemble import ActionEnsemble, EnsembleSpec

__all__ = [
    "PUBLISHED",
    "ActionAdapter",
    "ActionConvention",
    "GripperReference",
    "GripperState",
    "adapter_for",
    "axis_angle",
    "checked_scale",
    "dataset_key",
    "gripper_command",
]

DIMENSIONS: Final = 7
OPEN_ABOVE: Final = 0.5
"""An opening above this is "open"; a change of more than this starts a sticky command."""


class GripperReference(str, Enum):
    """What a relative gripper command is the change from."""

    PREVIOUS = "previous"
    """The opening asked for a step ago: SimplerEnv itself, and OpenVLA on it. An opening that moves
    slowly, or that turns back while a command is held, changes nothing."""
    COMMANDED = "commanded"
    """The opening at the last command: SpatialVLA, CogACT and π0 on SimplerEnv."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionConvention:
    """How the actions of a policy are given to a robot.

    Attributes:
        robot: what its simulator takes.
        action_scale: factor on translation and rotation.
        sticky_steps: steps for which a relative gripper command is held; None takes the robot's.
        gripper_reference: what a relative gripper command is the change from.
        unnorm_key: dataset whose statistics the published evaluation uses for this robot.
        ensemble: how overlapping chunks become one action; None takes the newest one's.
    """

    robot: RobotSpec
    action_scale: float = 1.0
    sticky_steps: int | None = None
    gripper_reference: GripperReference = GripperReference.PREVIOUS
    unnorm_key: str | None = None
    ensemble: EnsembleSpec | None = None

    @property
    def held_steps(self) -> int:
        """Steps for which a relative gripper command is held."""
        return self.robot.sticky_steps if self.sticky_steps is None else self.sticky_steps


_COMMANDED: Final = GripperReference.COMMANDED
_SPATIALVLA_CHUNKS: Final = EnsembleSpec(horizon=4, strength=-0.8)

PUBLISHED: Final[Mapping[tuple[str, str], ActionConvention]] = MappingProxyType(
    {
        ("openvla", "widowx"): ActionConvention(robot=ROBOTS["widowx"], unnorm_key="bridge_orig"),
        ("openvla", "google_robot"): ActionConvention(
            robot=ROBOTS["google_robot"], unnorm_key="fractal20220817_data"
        ),
        ("spatialvla", "widowx"): ActionConvention(
            robot=ROBOTS["widowx"],
            unnorm_key="bridge_orig/1.0.0",
            ensemble=_SPATIALVLA_CHUNKS,
        ),
        ("spatialvla", "google_robot"): ActionConvention(
            robot=ROBOTS["google_robot"],
            sticky_steps=10,
            gripper_reference=_COMMANDED,
            unnorm_key="fractal20220817_data/0.1.0",
            ensemble=_SPATIALVLA_CHUNKS,
        ),
        ("pi0", "widowx"): ActionConvention(robot=ROBOTS["widowx"]),
        ("pi0", "google_robot"): ActionConvention(
            robot=ROBOTS["google_robot"], sticky_steps=10, gripper_reference=_COMMANDED
        ),
    }
)
"""The conventions of the published evaluations, by policy and robot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GripperState:
    """What a relative gripper remembers within an episode.

    Attributes:
        reference: opening that the next change counts from; None before the first step.
        held: command that is being held.
        steps_left: steps for which it is held still; 0 where none is.
    """

    reference: float | None = None
    held: float = 0.0
    steps_left: int = 0


def axis_angle(euler: ArrayLike) -> FloatArray:
    """Rotation vectors of Euler angles: roll, pitch, yaw about the fixed axes x, y, z in turn.

    Args:
        euler: radians, shape ``(..., 3)``.

    Returns:
        Axis times angle, radians, same shape, the shortest way round.

    >>> axis_angle([0.0, 0.3, 0.0]).round(12).tolist()
    [0.0, 0.3, 0.0]
    """
    with np.errstate(invalid="ignore"):  # what is not finite stays so, for the monitor to see
        half = np.asarray(euler, dtype=np.float64) / 2.0
        (cr, cp, cy), (sr, sp, sy) = (np.moveaxis(f(half), -1, 0) for f in (np.cos, np.sin))
        w = cr * cp * cy + sr * sp * sy
        vector = np.stack(
            [
                sr * cp * cy - cr * sp * sy,
                cr * sp * cy + sr * cp * sy,
                cr * cp * sy - sr * sp * cy,
            ],
            axis=-1,
        )
        vector = np.where((w < 0.0)[..., None], -vector, vector)
        sine = np.linalg.norm(vector, axis=-1)
        # angle / sin(angle / 2) tends to 2 for small angles.
        near = sine < 1e-12
        factor = np.where(near, 2.0, 2.0 * np.arctan2(sine, np.abs(w)) / np.where(near, 1.0, sine))
    return np.asarray(factor[..., None] * vector, dtype=np.float64)


def gripper_command(
    state: GripperState, opening: float, convention: ActionConvention
) -> tuple[GripperState, float]:
    """The robot's gripper number for an opening, and what is remembered then.

    Args:
        state: before this step.
        opening: that the policy wants, 0 closed to 1 open. What is not finite passes unchanged and
            leaves no trace in the state, so that the monitor sees it.
        convention: convention of the policy on this robot.
    """
    sign = convention.robot.open_sign
    if not np.isfinite(opening):
        return state, opening
    if convention.robot.gripper is GripperCommand.ABSOLUTE:
        return state, float(sign if opening > OPEN_ABOVE else -sign)
    first = state.reference is None
    change = 0.0 if state.reference is None else sign * (opening - state.reference)
    starts = state.steps_left == 0 and abs(change) > OPEN_ABOVE
    follows = convention.gripper_reference is GripperReference.PREVIOUS
    reference = opening if first or starts or follows else state.reference
    if starts:
        state = GripperState(held=change, steps_left=convention.held_steps)
    left = max(state.steps_left - 1, 0)
    command = state.held if state.steps_left else change
    return GripperState(reference=reference, held=state.held, steps_left=left), float(command)


@final
class ActionAdapter:
    """Turns the actions of one policy into those of one robot, episode by episode.

    Args:
        convention: convention of the policy on the robot; a bare robot takes the robot's defaults.
    """

    def __init__(self, convention: ActionConvention | RobotSpec) -> None:
        if isinstance(convention, RobotSpec):
            convention = ActionConvention(robot=convention)
        self.convention = convention
        self._ensemble = ActionEnsemble(convention.ensemble) if convention.ensemble else None
        self._gripper = GripperState()

    def reset(self) -> None:
        """Begin an episode: no command is held, no chunk remembered."""
        self._gripper = GripperState()
        if self._ensemble is not None:
            self._ensemble.reset()

    def require_opening(self, lowest: float) -> None:
        """Refuse a policy whose last number is not an opening.

        Args:
            lowest: 1% quantile of the last number in the policy's data.

        Raises:
            ConfigError: if it is so far below 0 that the number must be a sign or a change.
        """
        if lowest < -OPEN_ABOVE:
            msg = (
                f"robot={self.convention.robot.name!r} takes a gripper number from 0 (closed) to 1 "
                f"(open), this checkpoint's goes down to {lowest:.3g}: its actions are in the "
                "simulator's own units already; leave robot out"
            )
            raise ConfigError(msg)

    def __call__(self, raw: ArrayLike) -> FloatArray:
        """The robot's action for one of the policy, which is taken as done.

        Args:
            raw: metres, Euler angles [rad] and opening, shape ``(7,)``.

        Returns:
            Metres, axis-angle vector [rad] and the robot's gripper number, shape ``(7,)``.
        """
        action = self._moved(raw, ndim=1)
        self._gripper, action[-1] = gripper_command(self._gripper, action[-1], self.convention)
        return action

    def alternatives(self, raw: ArrayLike) -> FloatArray:
        """The robot's actions for several that the policy might take now; none is taken as done.

        Args:
            raw: shape ``(K, 7)``.
        """
        actions = self._moved(raw, ndim=2)
        for row in actions:
            _, row[-1] = gripper_command(self._gripper, row[-1], self.convention)
        return actions

    def plan(self, raw: ArrayLike) -> FloatArray:
        """The robot's actions for consecutive steps from now on; none is taken as done.

        Args:
            raw: shape ``(H, 7)``.
        """
        actions, state = self._moved(raw, ndim=2), self._gripper
        for row in actions:
            state, row[-1] = gripper_command(state, row[-1], self.convention)
        return actions

    def adapt(self, output: PolicyOutput) -> PolicyOutput:
        """The output with action, samples and chunk as the robot takes them.

        The action counts as done. Where the convention has an ensemble, it is made of the chunk;
        the first row of the returned chunk is the action in any case.
        """
        raw, chunk = np.asarray(output.action, dtype=np.float64), None
        if output.chunk is not None:
            chunk = np.array(output.chunk, dtype=np.float64)
            if self._ensemble is not None:
                raw = chunk[0] = self._ensemble.update(chunk)
        samples = None if output.samples is None else self.alternatives(output.samples)
        planned = None if chunk is None else self.plan(chunk)
        return replace(output, action=self(raw), samples=samples, chunk=planned)

    def _moved(self, raw: ArrayLike, *, ndim: int) -> FloatArray:
        action = np.array(raw, dtype=np.float64)
        if action.ndim != ndim or action.shape[-1] != DIMENSIONS:
            wanted = "(7,)" if ndim == 1 else "(n, 7)"
            msg = (
                f"the policy's action has shape {action.shape}; robot {self.convention.robot.name} "
                f"takes {wanted}: metres, Euler angles and opening"
            )
            raise ValueError(msg)
        scale = self.convention.action_scale
        action[..., :3] *= scale
        action[..., 3:6] = scale * axis_angle(action[..., 3:6])
        return action


def adapter_for(
    policy: str, robot: str | ActionConvention | RobotSpec | None
) -> ActionAdapter | None:
    """The adapter for an option ``robot=`` of a policy.

    Args:
        policy: family whose published convention is meant: openvla, spatialvla, pi0.
        robot: name of a robot for the published convention, or a convention of one's own; None
            leaves the policy's actions as they are.

    Raises:
        ConfigError: if there is no robot of this name.
    """
    if robot is None:
        return None
    if isinstance(robot, str):
        if robot not in ROBOTS:
            raise ConfigError(unknown_name("robot", robot, ROBOTS))
        robot = PUBLISHED.get((policy, robot), ActionConvention(robot=ROBOTS[robot]))
    if not isinstance(robot, ActionConvention | RobotSpec):
        raise ConfigError(unknown_name("robot", robot, ROBOTS))
    return ActionAdapter(robot)


def dataset_key(
    given: str | None, adapter: ActionAdapter | None, known: Container[str]
) -> str | None:
    """Return the dataset key to use: the given one, else the one published for the robot.

    Args:
        given: option ``unnorm_key``.
        adapter: adapter of the robot, or None.
        known: keys of the checkpoint's statistics; a published key that is not one is not used.
    """
    if given is not None or adapter is None:
        return given
    published = adapter.convention.unnorm_key
    return published if published in known else None


def checked_scale(adapter: ActionAdapter | None, lowest_opening: float | None) -> float:
    """Return the factor of a robot on translations, 1.0 without a robot.

    Args:
        adapter: adapter of the robot, or None.
        lowest_opening: as for :meth:`ActionAdapter.require_opening`; None skips the check.

    Raises:
        ConfigError: if the last action dimension cannot be a gripper opening.
    """
    if adapter is None:
        return 1.0
    if lowest_opening is not None:
        adapter.require_opening(lowest_opening)
    return adapter.convention.action_scale
