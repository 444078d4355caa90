"""The monitor: evidence, metrics, belief, faults, score, mode and action of every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, final

import numpy as np
from numpy.typing import ArrayLike

from monitor.belief.kalman import KalmanModel
from monitor.calibration import Calibration, FilterNoise
from monitor.config import BeliefConfig, MonitorConfig
from monitor.controller import Controller, ControllerState, Demand, Limits
from monitor.core.core import Core
from monitor.core.plan import Plan
from monitor.errors import ConfigError, DimensionError, MisuseError, misuse, unknown_name
from monitor.faults import Setting, responses
from monitor.faults.rules import RuleCount
from monitor.gripper import GripperCommands
from monitor.metrics.catalogue import CATALOGUE
from monitor.metrics.plugins import MetricSetting, build_plugins
from monitor.reading.step import StepReader
from monitor.records import Alert, Decision, Evidence, Fault, FloatArray, Mode, Numbers, Step
from monitor.recovery import Retreat
from monitor.score import Scoring, moved_signals


class _Stage(Protocol):
    def reset(self) -> None: ...


@final
class Monitor:
    """Watches one robot. Not thread-safe; a deep copy or pickle continues identically.

    >>> monitor = Monitor(action_low=[-1.0] * 7, action_high=[1.0] * 7)
    >>> monitor.update(Step(action=[0.0] * 7)).mode
    <Mode.TASK: 'TASK'>
    >>> monitor.update(Step(action=[float("nan")] * 7)).faults[0].code
    'NONFINITE_ACTION'
    """

    def __init__(
        self,
        config: MonitorConfig | None = None,
        *,
        action_low: ArrayLike,
        action_high: ArrayLike,
        calibration: Calibration | None = None,
    ) -> None:
        """Build the stages.

        Args:
            config: None takes the defaults.
            action_low: ``(D,)`` lower end of the action space, finite.
            action_high: ``(D,)`` upper end.
            calibration: of this policy and environment; None scores by reference quantiles.

        Raises:
            DimensionError: the ends of the action space do not fit.
            ConfigError: the configuration names something unknown, or the calibration was fitted
                with another one.
        """
        config = MonitorConfig() if config is None else config
        _check_names(config)
        if calibration is not None:
            _check_fits(calibration, config)
        low, high = _bounds(action_low, action_high)
        self.config: Final = config
        self.calibration: Final = calibration
        self._low, self._high = low, high
        metrics = config.metrics
        about = MetricSetting(action_low=low, action_high=high, window=metrics.window)
        (plugins,) = build_plugins(metrics, about, 1)
        self._reader = StepReader(low, high, plugins)
        self._blank = dict.fromkeys((*CATALOGUE, *(name for one in plugins for name in one.ids)))
        noise = None if calibration is None else calibration.noise
        setting = Setting(
            config=config.faults,
            action_low=low,
            action_high=high,
            window=metrics.window,
            control_dt_s=config.control_dt_s,
            gripper=GripperCommands.of(config.robot.gripper),
            gripper_change=metrics.gripper_change,
            still_path_m=metrics.still_path_m,
        )
        self._respond = responses(config.faults)
        self._rules = [RuleCount(rule) for rule in config.rules]
        signals = None if calibration is None else calibration.signals
        self.plan: Final = Plan(
            config=config,
            setting=setting,
            model=kalman_model(config.belief, noise),
            scoring=Scoring.of(config.score, signals),
            moved=moved_signals(config.score.signals),
            ids=tuple(self._blank),
        )
        self._core = Core(self.plan)
        limits = Limits.from_config(
            config.controller,
            None if calibration is None else calibration.tau_recover,
            None if calibration is None else calibration.tau_halt,
        )
        self._controller = Controller(limits, config.controller.aggregation == "running_max")
        self._enforce = config.controller.enforce
        self._calm_below = limits.tau_recover - limits.hysteresis
        self._retreat = Retreat(config.recovery, low, high, config.robot.gripper)
        self.reset()

    @property
    def limits(self) -> Limits:
        """The controller's constants in force."""
        return self._controller.limits

    @property
    def ids(self) -> tuple[str, ...]:
        """Of all metrics that a decision has."""
        return (*self._blank, *(f"{name}_peak" for name in self.config.metrics.peaks))

    @property
    def tau_recover(self) -> float:
        """Threshold in force, of the calibration where there is one."""
        return self._controller.limits.tau_recover

    @property
    def tau_halt(self) -> float:
        """Threshold in force, of the calibration where there is one."""
        return self._controller.limits.tau_halt

    @property
    def pooled(self) -> Mapping[str, float]:
        """Peak surprise over the window by signal: what the score is made of."""
        return self._core.pooled

    def views(self) -> dict[str, Numbers]:
        """Return A-PI, A-VI and A-AI per action dimension as of the last step.

        Values per token are in ``decision.evidence.tokens``.
        """
        return self._core.per_dimension()

    def reset(self, instruction: str = "", task: str | None = None) -> None:
        """Begin an episode; the monitor is then as new."""
        self.instruction = instruction
        self.task = task
        self._index = 0
        self._succeeded = False
        self._active: dict[str, tuple[str, str]] = {}
        stages: tuple[_Stage, ...] = (
            self._reader,
            self._core,
            self._controller,
            self._retreat,
            *self._rules,
        )
        for stage in stages:
            stage.reset()

    def update(self, step: Step) -> Decision:
        """Judge one step; never raises on bad data, which becomes faults.

        Raises:
            MisuseError: what is given is no ``Step``.
        """
        if not isinstance(step, Step):
            raise MisuseError(misuse(step))
        return self._decide(self._reader.read(step, self._index))

    def replay(self, evidence: Evidence) -> Decision:
        """Judge a recorded step again, with the same result to the last bit."""
        return self._decide(evidence)

    def _decide(self, evidence: Evidence) -> Decision:
        index = self._index
        if evidence.success:
            self._succeeded = True
        values, faults, score, belief = self._core.update(evidence, index, self._succeeded)
        score = self._controller.aggregate(score)
        demand: Demand = "none"
        active: dict[str, tuple[str, str]] = {}
        if faults or self._rules:
            demand, active = self._demand(values, faults)
        before = self._controller.state
        mode = self._controller.update(score, demand)
        action = self._act(evidence, mode, score, faults)
        alerts: tuple[Alert, ...] = ()
        if active or self._controller.state is not before:
            alerts = self._alerts(before, score, active)
        self._active = active
        self._index = index + 1
        return Decision(
            step=index,
            mode=mode,
            score=score,
            metrics=values,
            faults=tuple(faults),
            alerts=alerts,
            action=action,
            belief=belief,
            calibrated=self.calibration is not None,
            evidence=evidence,
        )

    def _demand(
        self, values: dict[str, float | None], faults: list[Fault]
    ) -> tuple[Demand, dict[str, tuple[str, str]]]:
        """Return the strongest response asked for, and what is active: code -> kind, message."""
        demand: Demand = "none"
        active: dict[str, tuple[str, str]] = {}
        for one in faults:
            response = self._respond.get(one.code, "alert")
            if response != "ignore":
                active.setdefault(one.code, ("fault", one.message))
                demand = _stronger(demand, response)
        if self._rules:
            codes = {one.code for one in faults}
            for count in self._rules:
                rule = count.rule
                if count.holds(values, codes) and rule.respond != "ignore":
                    active[rule.name] = ("rule", f"rule {rule.name!r} holds")
                    demand = _stronger(demand, rule.respond)
        return demand, active

    def _act(
        self, evidence: Evidence, mode: Mode, score: float | None, faults: list[Fault]
    ) -> FloatArray | None:
        """Return the action that may be sent."""
        retreat = self._retreat
        if mode is Mode.HALT and self._enforce:
            return None
        if mode is Mode.RECOVER and self._enforce and self.config.recovery.enabled:
            config, state = self.config, self._controller.state
            moving = state.age <= config.recovery.steps
            if state.age == 1:
                retreat.begin(evidence)
            elif state.age == config.recovery.steps + 1:
                self._core.forget_moved()
            return retreat.action(evidence, moving)
        retreat.note_action(evidence.action)
        if mode is Mode.TASK and not faults and (score is None or score < self._calm_below):
            retreat.remember(evidence)
        if evidence.action is None:
            # Nothing usable was asked for and the configuration does not halt: hold the place.
            return None if mode is Mode.HALT else retreat.action(evidence, moving=False)
        action = np.array(evidence.action)
        if faults and any(one.code == "ACTION_RANGE" for one in faults):
            np.clip(action, self._low, self._high, out=action)
        return action

    def _alerts(
        self,
        before: ControllerState,
        score: float | None,
        active: dict[str, tuple[str, str]],
    ) -> tuple[Alert, ...]:
        """Return what begins at this step: modes, attempts, faults and rules."""
        index, state = self._index, self._controller.state
        found = [
            Alert(kind=kind, code=code, step=index, message=message, score=score)
            for code, (kind, message) in active.items()
            if code not in self._active
        ]
        if state.mode is not before.mode or state.attempts != before.attempts:
            shown = "unknown" if score is None else f"{score:.2f}"
            text = f"step {index}: {state.mode.value} (score {shown}, attempt {state.attempts})"
            code = state.mode.value
            found.append(Alert(kind="mode", code=code, step=index, message=text, score=score))
        return tuple(found)


def _stronger(demand: Demand, response: str) -> Demand:
    if response == "halt" or demand == "halt":
        return "halt"
    return "recover" if response == "recover" or demand == "recover" else "none"


def _check_names(config: MonitorConfig) -> None:
    """Refuse ids that no metric has; plugins may bring more, so they are not checked then."""
    if config.metrics.plugins:
        return
    terms = [term.metric for rule in config.rules for term in rule.of if term.metric]
    for name in (*config.score.signals, *config.metrics.peaks, *terms):
        if name not in CATALOGUE:
            raise ConfigError(unknown_name("metric", name, CATALOGUE))


def _check_fits(calibration: Calibration, config: MonitorConfig) -> None:
    """Refuse thresholds that were fitted on other scores than these; no hash says nothing."""
    want, given = config.score_hash(), calibration.config_hash
    if given and given != want:
        message = (
            f"the calibration of {calibration.policy}/{calibration.env} was fitted with score "
            f"configuration {given}, this configuration is {want}: its thresholds mean nothing "
            "here. Use the configuration it was fitted with (sections control_dt_s, metrics, "
            "belief, score), or fit again: `vlawatch run --watch-only`, then `vlawatch calibrate`"
        )
        raise ConfigError(message)


def _bounds(action_low: ArrayLike, action_high: ArrayLike) -> tuple[FloatArray, FloatArray]:
    low = np.array(action_low, dtype=np.float64)
    high = np.array(action_high, dtype=np.float64)
    if low.ndim != 1 or low.shape != high.shape or low.size == 0:
        message = (
            f"action_low {low.shape} and action_high {high.shape} must both be (D,) with D >= 1; "
            "give the low and high of the environment's action space"
        )
        raise DimensionError(message)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        message = (
            f"action_low {low.tolist()} must be finite and at most action_high {high.tolist()}; "
            "an unbounded action space needs bounds of your own"
        )
        raise DimensionError(message)
    return low, high


def kalman_model(belief: BeliefConfig, noise: FilterNoise | None) -> KalmanModel:
    """Return the filter's noise as configured, or as a calibration has fitted it."""
    stds = belief if noise is None else noise
    return KalmanModel(
        q_distance=stds.process_std_m**2,
        q_velocity=stds.process_std_velocity**2,
        r=stds.measurement_std_m**2,
        initial_distance=belief.initial_var_distance,
        initial_velocity=belief.initial_var_velocity,
    )
