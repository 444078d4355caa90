"""``Monitor``: evidence, metrics, belief, faults, score, mode and action of every step."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from operator import itemgetter
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike

from monitor.calibration import Calibration
from monitor.catalogue import CATALOGUE
from monitor.config import MonitorConfig
from monitor.control.controller import DEMANDS, HALT, MODES, ControllerLimits, Demand
from monitor.control.recovery import RecoveryContext, recovery_action
from monitor.errors import MisuseError, misuse
from monitor.faults.base import StepContext
from monitor.faults.data import data_faults
from monitor.parts import Parts
from monitor.reading.step import StepReader
from monitor.records import Alert, Belief, Decision, Evidence, Fault, Mode, Step
from monitor.scoring.registry import foreign_scores
from monitor.scoring.surprise import SurpriseScorer
from monitor.stage import MetricInfo
from monitor.stage.base import make_fault, raised

__all__ = ["Monitor", "row_of"]

UNKNOWN_POSITION: Final = (nan,) * 3
UNKNOWN_ORIENTATION: Final = (nan,) * 4


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
        """Build the parts.

        Args:
            config: Configuration; None takes the defaults.
            action_low: ``(D,)`` lower end of the action space, finite.
            action_high: ``(D,)`` upper end.
            calibration: Calibration for this policy and environment; None: reference quantiles.

        Raises:
            DimensionError: The ends of the action space do not fit.
            ConfigError: The configuration names something unknown, or the calibration was fitted
                with another one.
        """
        parts = self._parts = Parts(config, action_low, action_high, calibration, 1)
        setup, engine = parts.setup, parts.engine
        self.config: Final = setup.config
        self.calibration: Final = calibration
        self._reader = StepReader(setup.action_low, setup.action_high, parts.plugins[0])
        self._blank: dict[str, float | None] = dict.fromkeys(parts.ids)
        self._metrics = itemgetter(*engine.metric_columns)
        self._belief = itemgetter(*map(engine.column, Belief.__struct_fields__))
        self._padding = (0.0,) * (setup.sizes["dim"] - setup.dim)
        self._no_action = (nan,) * setup.dim
        self._sees_data = "data" not in self.config.faults.off
        self.reset()

    @property
    def limits(self) -> ControllerLimits:
        """The controller's constants in force."""
        return self._parts.limits

    @property
    def ids(self) -> tuple[str, ...]:
        """Metric ids present in every decision."""
        return (*self._blank, *(f"{name}_peak" for name in self.config.metrics.peaks))

    @property
    def plugin_metrics(self) -> tuple[MetricInfo, ...]:
        """What plugins say of their metrics."""
        infos = self._parts.setup.metrics
        return tuple(info for name, info in infos.items() if name not in CATALOGUE)

    @property
    def tau_recover(self) -> float:
        """Threshold in force, the calibration's where there is one."""
        return self.limits.tau_recover

    @property
    def tau_halt(self) -> float:
        """Threshold in force, the calibration's where there is one."""
        return self.limits.tau_halt

    @property
    def pooled(self) -> Mapping[str, float]:
        """What the score is made of: peak surprise over the window by signal."""
        return self._parts.scorer.explain(0)

    def reset(self, instruction: str = "", task: str | None = None) -> None:
        """Begin an episode; the monitor is then as new."""
        self.instruction = instruction
        self.task = task
        self._index = 0
        self._succeeded = 0.0
        self._active: dict[str, tuple[str, str]] = {}
        self._reader.reset()
        self._parts.reset()

    def update(self, step: Step) -> Decision:
        """Judge one step; never raises on bad data, which becomes faults.

        Raises:
            MisuseError: What is given is not a ``Step``.
        """
        if not isinstance(step, Step):
            raise MisuseError(misuse(step))
        return self._decide(self._reader.read(step, self._index))

    def replay(self, evidence: Evidence) -> Decision:
        """Judge a recorded step again, with the same result to the last bit."""
        return self._decide(evidence)

    def _decide(self, evidence: Evidence) -> Decision:
        index, parts = self._index, self._parts
        if evidence.success:
            self._succeeded = 1.0
        action = evidence.action
        padded = (self._no_action if action is None else action) + self._padding
        row = parts.engine.run.update_one(row_of(evidence, padded))
        values = self._measure(evidence, row)
        faults: list[Fault] = []
        score = self._score(values, faults)
        self._add_faults(evidence, row, values, faults)
        demand, active = self._demand(values, faults)
        position = evidence.tcp_position
        out_of_range = bool(faults) and any(one.code == "ACTION_RANGE" for one in faults)
        decided, mode, attempts, age, changed, well, recovering, forget, sendable, *sent = (
            parts.control.update_one(
                (
                    score, demand, bool(faults), out_of_range,
                    nan if evidence.gripper is None else evidence.gripper,
                    *(UNKNOWN_POSITION if position is None else position), *padded,
                )
            )
        )  # fmt: skip
        if forget:
            try:
                parts.scorer.forget_motion([True])
            except Exception as error:  # foreign code: its failure must not be the monitor's
                faults.append(self._scorer_fault(error))
        chosen = np.array(sent[: len(self._no_action)]) if sendable else None
        if parts.recoveries and mode != HALT and self.config.controller.enforce:
            chosen, failed = self._recover(evidence, age, attempts, recovering, well, chosen)
            if failed is not None:
                faults.append(failed)
                active[failed.code] = ("fault", failed.message)
                mode, changed = HALT, 1.0
        shown = decided if decided == decided else None
        alerts: tuple[Alert, ...] = ()
        if active or changed:
            alerts = self._alerts(MODES[int(mode)], int(attempts), bool(changed), shown, active)
        self._active = active
        self._index = index + 1
        return Decision(
            step=index,
            mode=MODES[int(mode)],
            score=shown,
            metrics=values,
            faults=tuple(faults),
            alerts=alerts,
            action=chosen,
            belief=self._believe(row),
            calibrated=self.calibration is not None,
            evidence=evidence,
        )

    def _measure(self, evidence: Evidence, row: list[float]) -> dict[str, float | None]:
        """Return every metric of the step."""
        values = self._blank.copy()
        values.update(evidence.signals)
        found = self._metrics(row)
        values.update(
            zip(self._parts.engine.ids, [None if x != x else x for x in found], strict=True)
        )
        for one in self._parts.information:
            one.update(evidence, values)
        for name in self._parts.peaks.names:
            value = values.get(name)
            given = np.array([nan if value is None else value])
            peak = float(self._parts.peaks.update(name, given)[0])
            values[f"{name}_peak"] = peak if peak == peak else None
        return values

    def _believe(self, row: list[float]) -> Belief | None:
        d, v, a, b, c, innovation, variance, nis = self._belief(row)
        if d != d:
            return None
        known = innovation == innovation
        return Belief(
            distance=d,
            velocity=v,
            var_distance=a,
            cov=b,
            var_velocity=c,
            innovation=innovation if known else None,
            innovation_var=variance if known else None,
            nis=nis if known else None,
        )

    def _score(self, values: Mapping[str, float | None], faults: list[Fault]) -> float:
        """Return the score before the controller's aggregation, NaN while unknown."""
        scorer = self._parts.scorer
        row = [nan if (x := values.get(name)) is None else x for name in scorer.signals]
        if isinstance(scorer, SurpriseScorer):
            return scorer.update_one(row, self._succeeded)
        try:
            given, succeeded = np.array(row).reshape(1, -1), np.array([self._succeeded])
            return foreign_scores(scorer, given, succeeded).item()
        except Exception as error:  # foreign code: its failure must not be the monitor's
            faults.append(self._scorer_fault(error))
            return nan

    def _scorer_fault(self, error: Exception) -> Fault:
        said = raised(error)
        text = f"scorer {self.config.score.scorer!r} {said}"
        return make_fault("SCORER_ERROR", self._index, text, "", value=said)

    def _add_faults(
        self,
        evidence: Evidence,
        row: list[float],
        values: dict[str, float | None],
        faults: list[Fault],
    ) -> None:
        """Add the faults of the data, of the stages and of plugins."""
        engine, index = self._parts.engine, self._index
        quiet = evidence.action is not None and evidence.decode_ok and not evidence.problems
        if self._sees_data and not (
            quiet and evidence.policy_error is None and evidence.env_error is None
        ):
            faults.extend(data_faults(evidence, index))
        if any(row[engine.first_fault :]):
            out = engine.outputs(row)
            for stage, column in zip(engine.faults, engine.fault_columns, strict=True):
                if row[column]:
                    text, detail = stage.describe(evidence, out, self._parts.setup)
                    info = stage.info
                    faults.append(make_fault(info.code, index, text, info.field, **detail))
        if self._parts.detectors[0]:
            context = StepContext(
                step=index,
                evidence=evidence,
                metrics=values,
                succeeded=bool(self._succeeded),
            )
            for detector in self._parts.detectors[0]:
                faults.extend(detector.check(context))

    def _demand(
        self, values: dict[str, float | None], faults: list[Fault]
    ) -> tuple[Demand, dict[str, tuple[str, str]]]:
        """Return the strongest response asked for, and what is active: code -> kind, message."""
        demand = Demand.NONE
        active: dict[str, tuple[str, str]] = {}
        for one in faults:
            response = self._parts.responses.get(one.code, "alert")
            if response != "ignore":
                active.setdefault(one.code, ("fault", one.message))
                demand = max(demand, DEMANDS[response])
        if self._parts.rules:
            codes = {one.code: True for one in faults}
            for count in self._parts.rules:
                rule, fires = count.rule, count.update(values, codes)[0]
                if fires and rule.respond != "ignore":
                    active[rule.name] = ("rule", f"rule {rule.name!r} holds")
                    demand = max(demand, DEMANDS[rule.respond])
        return demand, active

    def _recover(
        self,
        evidence: Evidence,
        age: float,
        attempts: float,
        recovering: float,
        well: float,
        chosen: Any,
    ) -> tuple[Any, Fault | None]:
        """Return the action of a recovery that is not the shipped retreat, or why it has none."""
        context = RecoveryContext(
            action=evidence.action,
            position=evidence.tcp_position,
            gripper=evidence.gripper,
            age=int(age) if recovering else 0,
            attempt=int(attempts),
        )
        name, recovery = self.config.recovery.behavior, self._parts.recoveries[0]
        try:
            if not recovering:
                recovery.observe(context, bool(well))
                return chosen, None
            return recovery_action(recovery, context, self._parts.setup), None
        except Exception as error:  # foreign code: an arm that it leaves without an action halts
            self._parts.control.apply(_halt, [True])
            said = raised(error)
            text = f"recovery {name!r} {said}"
            return None, make_fault("RECOVERY_ERROR", self._index, text, "", value=said)

    def _alerts(
        self,
        mode: Mode,
        attempts: int,
        changed: bool,
        score: float | None,
        active: dict[str, tuple[str, str]],
    ) -> tuple[Alert, ...]:
        """Return what begins at this step: modes, attempts, faults and rules."""
        index = self._index
        found = [
            Alert(kind=kind, code=code, step=index, message=message, score=score)
            for code, (kind, message) in active.items()
            if code not in self._active
        ]
        if changed:
            shown = "unknown" if score is None else f"{score:.2f}"
            text = f"step {index}: {mode.value} (score {shown}, attempt {attempts})"
            found.append(Alert(kind="mode", code=mode.value, step=index, message=text, score=score))
        return tuple(found)


def _halt(state: Any) -> None:
    state.controller.mode = HALT


def row_of(evidence: Evidence, action: tuple[float, ...]) -> tuple[float, ...]:
    """Return a step as a row of :class:`monitor.stage.StepRow`.

    Args:
        evidence: What was kept of the step.
        action: Padded action, NaN where unusable.
    """
    signals, position = evidence.signals, evidence.tcp_position
    orientation, success = evidence.tcp_quaternion, evidence.success
    rest = (
        evidence.gripper,
        evidence.goal_distance,
        None if success is None else float(success),
        evidence.latency_s,
        signals.get("alpha"),
        signals.get("action_mass"),
        signals.get("tokens_outside"),
        evidence.logits_id,
        evidence.image_id,
        evidence.image_std,
    )
    return (
        *action,
        *(UNKNOWN_POSITION if position is None else position),
        *(UNKNOWN_ORIENTATION if orientation is None else orientation),
        *[nan if x is None else x for x in rest],
    )
