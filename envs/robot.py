"""What a robot's actions mean: units, signs and rates, in one typed record per robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from monitor.errors import unknown_name

__all__ = ["ROBOTS", "GripperCommand", "RobotSpec", "robot_spec"]


class GripperCommand(str, Enum):
    """What the last number of an action is taken for."""

    ABSOLUTE = "absolute"
    """The opening wanted, as a target of the finger joints."""
    RELATIVE = "relative"
    """A change of the opening, added to the target of the finger joints at every step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotSpec:
    """A robot of SimplerEnv as its simulator takes actions.

    An action has shape ``(7,)``: translation of the tool [m] and rotation of the tool as an
    axis-angle vector [rad], both in the robot base frame, then the gripper.

    Attributes:
        name: key in :data:`ROBOTS`.
        control_freq_hz: steps a second.
        gripper: whether the last number is an opening or a change of it.
        open_sign: sign of the gripper number that opens the fingers, +1 or -1.
        sticky_steps: steps for which SimplerEnv's policies repeat a relative gripper command once
            it is given; 1 for an absolute gripper.
        max_steps: steps per episode in SimplerEnv, where a task does not say otherwise.
        joint_count: length of ``joint_positions``.
        links: regular expression that is found in the names of the robot's own bodies.
        fingers: the same for the hand, which may touch what it is to hold.

    Source: ``simpler_env/utils/env/env_builder.py`` and ``simpler_env/policies`` of SimplerEnv.
    """

    name: str
    control_freq_hz: float
    gripper: GripperCommand
    open_sign: int
    sticky_steps: int
    max_steps: int
    joint_count: int
    links: str = r"(^|_)link(_|$)"
    fingers: str = "finger|gripper"

    @property
    def control_dt_s(self) -> float:
        """Duration of a control step [s]."""
        return 1.0 / self.control_freq_hz


ROBOTS: Final[Mapping[str, RobotSpec]] = MappingProxyType(
    {
        "widowx": RobotSpec(
            name="widowx",
            control_freq_hz=5.0,
            gripper=GripperCommand.ABSOLUTE,
            open_sign=1,
            sticky_steps=1,
            max_steps=60,
            joint_count=8,
        ),
        "google_robot": RobotSpec(
            name="google_robot",
            control_freq_hz=3.0,
            gripper=GripperCommand.RELATIVE,
            open_sign=-1,
            sticky_steps=15,
            max_steps=80,
            joint_count=11,
        ),
    }
)


def robot_spec(name: str) -> RobotSpec:
    """The robot of this name.

    Raises:
        ValueError: if there is none; the message says which come near.
    """
    if name not in ROBOTS:
        raise ValueError(unknown_name("robot", name, ROBOTS))
    return ROBOTS[name]
