"""From score to mode: a pure transition and the shell that holds its state (spec 10).

Darabi et al., "GroundControl", eq. 24: score < tau_stable TASK, < tau_crit RECOVER, else HALT;
here with hysteresis, dwell, patience and a budget, so that a recovery can end both ways.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, final

from monitor.config import ControllerConfig
from monitor.records import Mode
from monitor.thresholds import choose_thresholds

Demand = Literal["none", "recover", "halt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The controller's constants, thresholds resolved against a calibration."""

    tau_recover: float
    tau_halt: float
    hysteresis: float
    calm_steps: int
    dwell: int
    patience: int
    budget: int
    halt_after: int

    @classmethod
    def from_config(
        cls, config: ControllerConfig, tau_recover: float | None, tau_halt: float | None
    ) -> Limits:
        """Return the limits of a configuration and, where there is one, a calibration.

        Args:
            config: a threshold that it gives wins over the calibration's.
            tau_recover: threshold of the calibration, None without one.
            tau_halt: threshold of the calibration, None without one.

        Raises:
            ConfigError: the thresholds in force are not in order.
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
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerState:
    """Where the controller is.

    Attributes:
        mode: now.
        attempts: at recovery, this one included.
        age: steps in this attempt, 1 at its first.
        calm: steps in a row without a reason to recover.
        critical: steps in a row at or above ``tau_halt``.
    """

    mode: Mode = Mode.TASK
    attempts: int = 0
    age: int = 0
    calm: int = 0
    critical: int = 0


START = ControllerState()


def transition(
    state: ControllerState, score: float | None, demand: Demand, limits: Limits
) -> ControllerState:
    """Return the next state; HALT stays until a reset.

    Args:
        state: before the step.
        score: pooled, None while unknown.
        demand: the strongest response that a fault or rule asks for.
        limits: thresholds and counts.
    """
    if state.mode is Mode.HALT:
        return state
    critical = state.critical + 1 if score is not None and score >= limits.tau_halt else 0
    if demand == "halt" or critical >= limits.halt_after:
        return replace(state, mode=Mode.HALT, critical=critical)
    if state.mode is Mode.TASK:
        if demand == "recover" or (score is not None and score >= limits.tau_recover):
            return _attempt(state, critical, limits)
        return replace(state, critical=critical) if critical != state.critical else state
    # In RECOVER an unknown score is no reason to stay: it is unknown because the retreat cleared
    # the windows, and whatever is unknown because of bad data is a fault with its own demand.
    quiet = score is None or score < limits.tau_recover - limits.hysteresis
    calm = state.calm + 1 if quiet and demand == "none" else 0
    if state.age >= limits.dwell and calm >= limits.calm_steps:
        return replace(state, mode=Mode.TASK, age=0, calm=0, critical=critical)
    if state.age >= limits.patience:
        return _attempt(state, critical, limits)
    return replace(state, age=state.age + 1, calm=calm, critical=critical)


def _attempt(state: ControllerState, critical: int, limits: Limits) -> ControllerState:
    if state.attempts >= limits.budget:
        return replace(state, mode=Mode.HALT, critical=critical)
    return ControllerState(
        mode=Mode.RECOVER, attempts=state.attempts + 1, age=1, calm=0, critical=critical
    )


@final
class Controller:
    """Holds the state; "running_max" makes the score one that never falls, as published."""

    __slots__ = ("_peak", "_running", "limits", "state")

    def __init__(self, limits: Limits, running_max: bool) -> None:
        self.limits = limits
        self._running = running_max
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self.state = START
        self._peak: float | None = None

    def aggregate(self, score: float | None) -> float | None:
        """Return the score that decides: itself, or its running maximum."""
        if not self._running:
            return score
        if score is not None and (self._peak is None or score > self._peak):
            self._peak = score
        return self._peak

    def update(self, score: float | None, demand: Demand) -> Mode:
        """Take one step in and return the mode."""
        self.state = transition(self.state, score, demand, self.limits)
        return self.state.mode
