"""What a monitor is made of: stages, scorer, controller, rules and plugins of N robots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike

from monitor.calibration import Calibration
from monitor.catalogue import CATALOGUE
from monitor.config import MonitorConfig
from monitor.control.control import control_pass
from monitor.control.controller import ControllerLimits
from monitor.control.recoveries import build_recoveries
from monitor.control.rules import RuleCount
from monitor.engine import Engine
from monitor.errors import ConfigError, DimensionError, unknown_name
from monitor.faults import check_families, responses
from monitor.faults.plugins import build_detectors, plugin_faults
from monitor.faults.plugins import plugin_stages as fault_stages
from monitor.metrics.information import Information
from monitor.metrics.peak import Peaks
from monitor.metrics.plugins import build_plugins, plugin_infos
from monitor.metrics.plugins import plugin_stages as metric_stages
from monitor.records import FloatArray
from monitor.scoring.registry import build_scorer
from monitor.stage import MetricInfo, Setup

__all__ = ["Parts"]


@final
class Parts:
    """The parts of a monitor of N robots; a single robot is N = 1.

    Attributes:
        setup: Action space and configuration.
        calibration: Calibration in force, None without one.
        engine: Metrics and faults.
        plugins: Metrics that run robot by robot, for each robot.
        detectors: Fault detectors that run robot by robot, for each robot.
        information: Tri-Info signals of each robot; empty where they are left out.
        peaks: Peaks of chosen metrics.
        scorer: The score.
        limits: The controller's constants in force.
        control: Mode and action.
        recoveries: Recovery of each robot, empty for the shipped retreat.
        rules: The configured rules.
        responses: Response by fault code.
        ids: Metrics in every decision, without the peaks.
    """

    def __init__(
        self,
        config: MonitorConfig | None,
        action_low: ArrayLike,
        action_high: ArrayLike,
        calibration: Calibration | None,
        n: int,
    ) -> None:
        config = MonitorConfig() if config is None else config
        faults = plugin_faults(config.faults.plugins)
        check_families(config.faults, faults)
        if calibration is not None:
            _check_fits(calibration, config)
        low, high = _bounds(action_low, action_high)
        noise = None if calibration is None else calibration.noise
        setup = Setup(config=config, action_low=low, action_high=high, noise=noise)
        self.calibration: Final = calibration
        self.plugins: Final = build_plugins(setup, n)
        self.detectors: Final = build_detectors(setup, n)
        stages = metric_stages(setup)
        self.engine: Final = Engine(setup, n, stages, fault_stages(setup))
        infos: dict[str, MetricInfo] = dict(CATALOGUE)
        infos.update((info.id, info) for stage in stages for info in stage.info)
        infos.update((info.id, info) for one in self.plugins[0] for info in plugin_infos(one))
        self.setup: Final = replace(setup, metrics=infos)
        _check_names(config, infos)
        self.ids: Final = tuple(infos)
        found = [Information.of(setup) for _ in range(n)]
        self.information: Final = [one for one in found if one is not None]
        self.peaks: Final = Peaks(config.metrics.peaks, config.metrics.window, n)
        tables = None if calibration is None else calibration.signals
        self.scorer: Final = build_scorer(self.setup, tables, n)
        self.limits: Final = ControllerLimits.from_config(
            config.controller,
            None if calibration is None else calibration.tau_recover,
            None if calibration is None else calibration.tau_halt,
        )
        self.control: Final = control_pass(self.setup, self.limits, n)
        self.recoveries: Final = build_recoveries(self.setup, n)
        self.rules: Final = [RuleCount(rule, n) for rule in config.rules]
        self.responses: Final[Mapping[str, str]] = responses(config.faults, faults)

    def reset(self, which: Any = None) -> None:
        """Begin an episode of the robots in a mask; None means all."""
        self.engine.run.reset(which)
        self.scorer.reset(which)
        self.control.reset(which)
        self.peaks.reset(which)
        for rule in self.rules:
            rule.reset(which)
        n = self.control.n
        robots = range(n) if which is None else np.arange(n)[which].tolist()
        for i in robots:
            each: list[Any] = [*self.plugins[i], *self.detectors[i]]
            each += [one[i] for one in (self.information, self.recoveries) if one]
            for part in each:
                part.reset()


def _check_names(config: MonitorConfig, known: Mapping[str, MetricInfo]) -> None:
    """Refuse ids that no metric has, shipped or of a plugin."""
    allowed = {*known, *(f"{name}_peak" for name in config.metrics.peaks)}
    terms = [term.metric for rule in config.rules for term in rule.of if term.metric]
    for name in (*config.score.signals, *config.metrics.peaks, *terms):
        if name not in allowed:
            raise ConfigError(unknown_name("metric", name, allowed))


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
