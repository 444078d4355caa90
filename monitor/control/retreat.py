"""Retreat: back along the arm's own recent safe path, raised, so that the policy can try again.

Actions are in environment units: the first three numbers are a translation in metres in the
robot's base frame, rotations stay as they are, the gripper opens unless it holds something.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan

import numpy as np

from monitor.metrics.geometry import length
from monitor.stage import Matrix, Setup, Vector, array, compiled
from monitor.stage.gripper import closing


@dataclass(slots=True)
class RetreatState:
    """Where the arm was safe, and the way back.

    Attributes:
        command: The last command that asked something of the gripper, NaN without one.
        closing: Whether it asked to close.
        count: Safe positions ever remembered.
        safe: Ring of safe positions.
        newest: The newest of them.
        path: The way back: where the retreat began, then safe positions, newest first, raised.
        at: The next waypoint.
        end: Number of waypoints.
    """

    command: float = nan
    closing: bool = False
    count: int = 0
    at: int = 0
    end: int = 0
    safe: Matrix = array("memory", 3, start=0.0)
    newest: Vector = array(3)
    path: Matrix = array("waypoints", 3, start=0.0)


@dataclass(slots=True)
class RetreatLimits:
    """The action space, how the gripper is commanded, and the configuration of the retreat."""

    dim: int = 7
    raise_m: float = 0.04
    tolerance_m: float = 0.01
    gripper_column: int = -1
    gripper_opens: float = 1.0
    gripper_closes: float = -1.0
    gripper_relative: bool = False
    held_low: float = 0.06
    held_high: float = 0.9
    low: Vector = array("dim", start=-1.0)
    high: Vector = array("dim", start=1.0)

    @classmethod
    def of(cls, setup: Setup) -> RetreatLimits:
        """Return the limits of a setup."""
        config, gripper = setup.config.recovery, setup.gripper
        return cls(
            dim=setup.dim,
            raise_m=config.raise_m,
            tolerance_m=config.tolerance_m,
            gripper_column=gripper.column(setup.dim),
            gripper_opens=gripper.opens,
            gripper_closes=gripper.closes,
            gripper_relative=gripper.relative,
            held_low=setup.config.robot.gripper.held_opening[0],
            held_high=setup.config.robot.gripper.held_opening[1],
            low=setup.padded(setup.action_low, 0.0),
            high=setup.padded(setup.action_high, 0.0),
        )


def neutral_action(setup: Setup) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return ``(D,)`` zeros, clipped to the action space."""
    return np.clip(np.zeros(setup.dim), setup.action_low, setup.action_high)


@compiled
def note_command(state: RetreatState, action: Vector, limits: RetreatLimits) -> None:
    """Keep what the policy last asked of the gripper."""
    if limits.gripper_column < 0 or isnan(action[0]):
        return
    command = action[limits.gripper_column]
    opens, closes = limits.gripper_opens, limits.gripper_closes
    wish = closing(command, state.command, opens, closes, limits.gripper_relative)
    if not isnan(wish):
        state.closing, state.command = wish > 0.0, command


@compiled
def remember(state: RetreatState, position: Vector, limits: RetreatLimits) -> None:
    """Note the position of a step at which all is well."""
    if limits.dim < 3 or isnan(position[0]):
        return
    if state.count > 0 and _distance(state.newest, position) <= limits.tolerance_m:
        return
    slot = state.count % len(state.safe)
    for j in range(3):
        state.newest[j] = state.safe[slot][j] = position[j]
    state.count += 1


@compiled
def begin(state: RetreatState, position: Vector, limits: RetreatLimits) -> None:
    """Lay out the way back, the newest position first, raised."""
    memory = len(state.safe)
    state.at = 1 if isnan(position[0]) else 0
    state.end = 1 + min(state.count, memory)
    for j in range(3):
        state.path[0][j] = position[j]
    for k in range(1, state.end):
        slot = (state.count - k) % memory
        for j in range(3):
            state.path[k][j] = state.safe[slot][j]
    for k in range(state.end):
        state.path[k][2] += limits.raise_m


@compiled
def act(
    state: RetreatState, position: Vector, opening: float, moving: bool,
    limits: RetreatLimits, out: Vector,
) -> None:  # fmt: skip
    """Write the action of this step; ``moving=False`` holds the position."""
    for j in range(len(out)):
        out[j] = 0.0
    if moving and limits.dim >= 3 and not isnan(position[0]):
        _approach(state, position, limits, out)
    column = limits.gripper_column
    if limits.dim > 3 and column >= 0:
        held = state.closing and (isnan(opening) or limits.held_low < opening < limits.held_high)
        out[column] = limits.gripper_closes if held else limits.gripper_opens
    clip(out, limits)


@compiled
def clip(action: Vector, limits: RetreatLimits) -> None:
    """Clip an action to its space."""
    for j in range(len(action)):
        if action[j] < limits.low[j]:
            action[j] = limits.low[j]
        if action[j] > limits.high[j]:
            action[j] = limits.high[j]


@compiled
def _approach(state: RetreatState, position: Vector, limits: RetreatLimits, out: Vector) -> None:
    """Write the translation towards the next waypoint that is not reached yet."""
    path = state.path
    while state.at < state.end and _distance(path[state.at], position) < limits.tolerance_m:
        state.at += 1
    if state.at >= state.end:
        return
    # One factor for all three keeps the direction inside the action space.
    factor = 1.0
    for j in range(3):
        want = path[state.at][j] - position[j]
        limit = limits.high[j] if want > 0.0 else limits.low[j]
        if want != 0.0 and limit / want < factor:
            factor = limit / want
    factor = max(0.0, factor)
    for j in range(3):
        out[j] = (path[state.at][j] - position[j]) * factor


@compiled
def _distance(a: Vector, b: Vector) -> float:
    return length(b[0] - a[0], b[1] - a[1], b[2] - a[2])
