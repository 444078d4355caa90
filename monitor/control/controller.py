"""From score to mode.

Darabi et al., "GroundControl", eq. 24: score < tau_stable TASK, < tau_crit RECOVER, else HALT;
here with hysteresis, dwell, patience and a budget, so that a recovery can end both ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import isnan, nan
from typing import Final

from monitor.config import ControllerConfig
from monitor.records import Mode
from monitor.stage import compiled
from monitor.thresholds import choose_thresholds

TASK, RECOVER, HALT = 0, 1, 2
MODES: Final = (Mode.TASK, Mode.RECOVER, Mode.HALT)
"""Modes by their number in arrays."""


class Demand(IntEnum):
    """The strongest response that a fault or rule asks for."""

    NONE = 0
    RECOVER = 1
    HALT = 2


DEMANDS: Final = {
    "ignore": Demand.NONE,
    "alert": Demand.NONE,
    "recover": Demand.RECOVER,
    "halt": Demand.HALT,
}
"""Demand by configured response."""


@dataclass(slots=True)
class ControllerLimits:
    """The controller's constants, thresholds resolved against a calibration."""

    tau_recover: float = 0.45
    tau_halt: float = 0.75
    hysteresis: float = 0.05
    calm_steps: int = 2
    dwell: int = 6
    patience: int = 12
    budget: int = 1
    halt_after: int = 1
    running_max: bool = False

    @classmethod
    def from_config(
        cls, config: ControllerConfig, tau_recover: float | None, tau_halt: float | None
    ) -> ControllerLimits:
        """Return the limits of a configuration and, where there is one, a calibration.

        Args:
            config: A threshold that it gives wins over the calibration's.
            tau_recover: Threshold of the calibration, None without one.
            tau_halt: Threshold of the calibration, None without one.

        Raises:
            ConfigError: The thresholds in force are not in order.
        """
        chosen = choose_thresholds(config, tau_recover, tau_halt)
        return cls(
            tau_recover=chosen["tau_recover"][0],
            tau_halt=chosen["tau_halt"][0],
            hysteresis=config.hysteresis,
            calm_steps=config.calm_steps,
            dwell=config.dwell,
            patience=config.patience,
            budget=config.budget,
            halt_after=config.halt_after,
            running_max=config.aggregation == "running_max",
        )


@dataclass(slots=True)
class ControllerState:
    """Where the controller is.

    Attributes:
        mode: Index into :data:`MODES`.
        attempts: Attempts at recovery, this one included.
        age: Steps in this attempt, 1 at its first.
        calm: Steps in a row without a reason to recover.
        critical: Steps in a row at or above ``tau_halt``.
        peak: Largest score so far, NaN before the first.
    """

    mode: int = TASK
    attempts: int = 0
    age: int = 0
    calm: int = 0
    critical: int = 0
    peak: float = nan


@compiled
def aggregate(state: ControllerState, score: float, limits: ControllerLimits) -> float:
    """Return the score that decides: itself, or, as published, its running maximum.

    >>> state, limits = ControllerState(), ControllerLimits(running_max=True)
    >>> [aggregate(state, x, limits) for x in (0.2, 0.6, nan, 0.1)]
    [0.2, 0.6, 0.6, 0.6]
    """
    if not limits.running_max:
        return score
    if isnan(state.peak) or score > state.peak:
        state.peak = score
    return state.peak


@compiled
def transition(
    state: ControllerState, score: float, demand: float, limits: ControllerLimits
) -> None:
    """Move to the next state; HALT stays until a reset.

    Args:
        state: The state before the step; written to.
        score: Pooled score, NaN while unknown.
        demand: A :class:`Demand`.
        limits: Thresholds and counts.

    >>> state, limits = ControllerState(), ControllerLimits()
    >>> transition(state, 0.5, 0, limits)
    >>> state.mode, state.attempts, state.age
    (1, 1, 1)
    """
    if state.mode == HALT:
        return
    state.critical = state.critical + 1 if score >= limits.tau_halt else 0
    if demand == 2 or state.critical >= limits.halt_after:
        state.mode = HALT
    elif state.mode == TASK:
        if demand == 1 or score >= limits.tau_recover:
            _attempt(state, limits)
    else:
        _recover(state, score, demand, limits)


@compiled
def _recover(state: ControllerState, score: float, demand: float, limits: ControllerLimits) -> None:
    # In RECOVER an unknown score is not a reason to stay: it is unknown because the retreat cleared
    # the windows, and whatever is unknown because of bad data is a fault with its own demand.
    quiet = not score >= limits.tau_recover - limits.hysteresis
    calm = state.calm + 1 if quiet and demand == 0 else 0
    if state.age >= limits.dwell and calm >= limits.calm_steps:
        state.mode, state.age, state.calm = TASK, 0, 0
    elif state.age >= limits.patience:
        _attempt(state, limits)
    else:
        state.age += 1
        state.calm = calm


@compiled
def _attempt(state: ControllerState, limits: ControllerLimits) -> None:
    if state.attempts >= limits.budget:
        state.mode = HALT
    else:
        state.mode, state.age, state.calm = RECOVER, 1, 0
        state.attempts += 1
