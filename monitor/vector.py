"""``VectorMonitor``: N robots, each with its own episode, in arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, final

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from monitor.calibration import Calibration
from monitor.config import MonitorConfig
from monitor.control.controller import DEMANDS, HALT, MODES, ControllerLimits, Demand
from monitor.control.recovery import RecoveryContext, recovery_action
from monitor.errors import DimensionError, MisuseError, misuse
from monitor.faults.batch_data import add_data_faults
from monitor.parts import Parts
from monitor.per_robot import PerRobot
from monitor.reading.batch import Batch, BatchReader, Mask, note
from monitor.records import FloatArray, Mode, Step
from monitor.scoring.registry import foreign_scores
from monitor.scoring.surprise import SurpriseScorer
from monitor.stage import StepRow

__all__ = ["VectorDecision", "VectorMonitor"]

Ints = NDArray[np.int64]

FROM_VALUES: Final = ("alpha", "action_mass", "tokens_outside")
"""Fields of a row that are metrics of the step."""
READ: Final = tuple(one.name for one in fields(StepRow) if one.name not in ("action", *FROM_VALUES))
"""Fields of a row that are fields of the same name of what was read."""


class VectorDecision(Struct, frozen=True, kw_only=True, eq=False):
    """What the monitor makes of one step of N robots; NaN is unknown in these arrays.

    Attributes:
        step: ``(N,)`` index within each episode.
        mode: ``(N,)`` 0 TASK, 1 RECOVER, 2 HALT; ``modes`` gives the names.
        score: ``(N,)``.
        metrics: ``(N,)`` by metric id, the ids of a single monitor.
        faults: ``(N,)`` bool by fault code; a code that no robot has is left out.
        began: ``(N,)`` bool by code or mode: the alerts of this step.
        action: ``(N, D)`` finite everywhere; zeros (clipped to the space) where not ``sendable``.
        sendable: ``(N,)`` bool: whether the action may be sent.
        calibrated: Whether the score rests on a calibration.
    """

    step: Ints
    mode: Ints
    score: FloatArray
    metrics: Mapping[str, FloatArray]
    faults: Mapping[str, Mask]
    began: Mapping[str, Mask]
    action: FloatArray
    sendable: Mask
    calibrated: bool

    @property
    def modes(self) -> list[Mode]:
        """Mode of each robot."""
        return [MODES[number] for number in self.mode.tolist()]


@final
class VectorMonitor:
    """Gives each of N robots what a :class:`monitor.Monitor` for it alone would give.

    ``update`` takes a ``Step`` whose fields have a leading axis of N (``policy_error`` and
    ``env_error`` may be sequences); NaN rows stand for a value that one robot lacks. Logits may
    be torch tensors; off the CPU they are summed up on their own device and one transfer brings
    the sums. Plugins written in Python, ``info_window`` and ``extra`` have no form in arrays:
    they run robot by robot and cost what N single monitors cost; ``extra`` is a mapping of
    ``(N,)`` arrays, or a sequence of N mappings.

    >>> monitor = VectorMonitor(num_envs=2, action_low=[-1.0] * 7, action_high=[1.0] * 7)
    >>> monitor.update(Step(action=np.zeros((2, 7)))).modes
    [<Mode.TASK: 'TASK'>, <Mode.TASK: 'TASK'>]
    """

    def __init__(
        self,
        config: MonitorConfig | None = None,
        *,
        num_envs: int,
        action_low: ArrayLike,
        action_high: ArrayLike,
        calibration: Calibration | None = None,
    ) -> None:
        """Build the parts; arguments as for :class:`monitor.Monitor`.

        Raises:
            DimensionError: ``num_envs`` is not positive, or the action space does not fit.
            ConfigError: The configuration names something unknown.
        """
        if num_envs < 1:
            message = f"num_envs {num_envs} must be at least 1"
            raise DimensionError(message)
        n = num_envs
        parts = self._parts = Parts(config, action_low, action_high, calibration, n)
        setup = parts.setup
        self.config: Final = setup.config
        self.calibration: Final = calibration
        self.num_envs: Final = num_envs
        self._dim = setup.dim
        self._reader = BatchReader(setup.action_low, setup.action_high, n)
        self._per_robot = PerRobot(parts, n)
        self._sees_data = "data" not in self.config.faults.off
        unknown = np.full(n, np.nan)
        unknown.setflags(write=False)
        self._blank = dict.fromkeys(parts.ids, unknown)
        self._values = np.full((n, len(parts.scorer.signals)), np.nan)
        self._index: Ints = np.zeros(n, dtype=np.int64)
        self._succeeded = np.zeros(n)
        self._active: dict[str, Mask] = {}

    @property
    def limits(self) -> ControllerLimits:
        """The controller's constants in force."""
        return self._parts.limits

    def reset(self, envs: ArrayLike | None = None) -> None:
        """Begin an episode of the robots in an index list or mask; None means all."""
        which = np.full(self.num_envs, envs is None)
        chosen = np.asarray(() if envs is None else envs)
        if chosen.size:  # an empty list is an array of floats, which are not indices
            which[chosen] = True
        self._reader.reset(which)
        self._per_robot.reset(which)
        self._parts.reset(which)
        self._index[which] = 0
        self._succeeded[which] = 0.0
        for mask in self._active.values():
            mask[which] = False

    def update(self, step: Step) -> VectorDecision:
        """Judge one step of all robots; never raises on bad data.

        Raises:
            MisuseError: What is given is not a ``Step``.
        """
        if not isinstance(step, Step):
            raise MisuseError(misuse(step))
        with np.errstate(invalid="ignore", over="ignore"):
            return self._decide(step)

    def _decide(self, step: Step) -> VectorDecision:
        batch = self._reader.read(step)
        self._succeeded[batch.success > 0.5] = 1.0
        self._fill(batch)
        found = self._parts.engine.run.update()
        values = self._measure(step, batch, found)
        raised: dict[str, Mask] = {}
        score = self._score(values, raised)
        faults = self._faults(step, batch, found, values)
        faults.update(raised)
        demand, active = self._demand(values, faults)
        return self._act(batch, score, demand, values, faults, active)

    def _fill(self, batch: Batch) -> None:
        """Write the step into the engine's rows."""
        rows, values = self._parts.engine.run.rows, batch.values
        rows["action"][:, : self._dim] = batch.action
        for name in READ:
            rows[name] = getattr(batch, name)
        for name in FROM_VALUES:
            rows[name] = values.get(name, np.nan)

    def _measure(self, step: Step, batch: Batch, found: FloatArray) -> dict[str, FloatArray]:
        """Return every metric that is known of some robot."""
        engine, values = self._parts.engine, batch.values
        columns = found[:, : engine.first_fault].copy().T  # handed out, so never the same array
        values.update(zip(engine.ids, [columns[c] for c in engine.metric_columns], strict=True))
        self._per_robot.measure(step, self._index, values, batch.faults)
        unknown = np.full(self.num_envs, np.nan)
        for name in self._parts.peaks.names:
            values[f"{name}_peak"] = self._parts.peaks.update(name, values.get(name, unknown))
        return values

    def _score(self, values: Mapping[str, FloatArray], raised: dict[str, Mask]) -> FloatArray:
        """Return the scores before the controller's aggregation, NaN while unknown."""
        scorer = self._parts.scorer
        for j, name in enumerate(scorer.signals):
            value = values.get(name)
            self._values[:, j] = np.nan if value is None else value
        if isinstance(scorer, SurpriseScorer):
            return scorer.update(self._values, self._succeeded)
        try:
            return foreign_scores(scorer, self._values, self._succeeded)
        except Exception:  # foreign code: its failure must not be the monitor's
            raised["SCORER_ERROR"] = np.ones(self.num_envs, dtype=bool)
            return np.full(self.num_envs, np.nan)

    def _faults(
        self, step: Step, batch: Batch, found: FloatArray, values: Mapping[str, FloatArray]
    ) -> dict[str, Mask]:
        """Return where which fault is present, by code."""
        engine = self._parts.engine
        faults: dict[str, Mask] = {}
        if self._sees_data:
            faults = batch.faults
            add_data_faults(step, batch.action, faults)
        totals = np.add.reduce(found[:, engine.first_fault :], axis=0).tolist()
        if any(totals):
            for stage, column in zip(engine.faults, engine.fault_columns, strict=True):
                if totals[column - engine.first_fault]:
                    faults[stage.info.code] = found[:, column] != 0.0
        self._per_robot.check(self._index, values, self._succeeded, faults)
        return faults

    def _demand(
        self, values: Mapping[str, FloatArray], faults: Mapping[str, Mask]
    ) -> tuple[FloatArray, dict[str, Mask]]:
        """Return the strongest response asked for, ``(N,)``, and what is active where."""
        demand = np.zeros(self.num_envs)
        active: dict[str, Mask] = {}
        for code, where in faults.items():
            response = self._parts.responses.get(code, "alert")
            if response == "ignore":
                continue
            active[code] = where.copy()
            if DEMANDS[response] != Demand.NONE:
                demand = np.maximum(demand, where * float(DEMANDS[response]))
        for count in self._parts.rules:
            fires, rule = count.update(values, faults), count.rule
            if rule.respond != "ignore" and fires.any():
                note(active, rule.name, fires)
                demand = np.maximum(demand, fires * float(DEMANDS[rule.respond]))
        return demand, active

    def _act(
        self,
        batch: Batch,
        score: FloatArray,
        demand: FloatArray,
        values: dict[str, FloatArray],
        faults: dict[str, Mask],
        active: dict[str, Mask],
    ) -> VectorDecision:
        """Decide mode and action of every robot."""
        parts, control = self._parts, self._parts.control
        rows, outs = control.rows, control.outs
        rows["score"], rows["demand"], rows["gripper"] = score, demand, batch.gripper
        rows["position"], rows["action"][:, : self._dim] = batch.position, batch.action
        rows["out_of_range"] = faults.get("ACTION_RANGE", 0.0)
        faulty = np.zeros(self.num_envs, dtype=bool)
        for where in faults.values():
            faulty |= where
        rows["faulty"] = faulty
        control.update()
        forget = outs["forget"] > 0.0
        if forget.any():
            try:
                parts.scorer.forget_motion(forget)
            except Exception:  # foreign code: its failure must not be the monitor's
                faults["SCORER_ERROR"] = forget
        action, mode = outs["action"][:, : self._dim].copy(), outs["mode"].astype(np.int64)
        sendable, changed = outs["sendable"] > 0.0, outs["changed"] > 0.0
        if parts.recoveries and self.config.controller.enforce:
            failed = self._recover(batch, action)
            if failed.any():
                faults["RECOVERY_ERROR"], active["RECOVERY_ERROR"] = failed, failed.copy()
                mode[failed], sendable[failed], changed[failed] = HALT, False, True
        decision = VectorDecision(
            step=self._index.copy(),
            mode=mode,
            score=outs["score"].copy(),
            metrics={**self._blank, **values},
            faults=faults,
            began=self._edges(active, mode, changed),
            action=action,
            sendable=sendable,
            calibrated=self.calibration is not None,
        )
        self._index += 1
        return decision

    def _recover(self, batch: Batch, action: FloatArray) -> Mask:
        """Write the actions of recoveries other than the shipped retreat; return where none is."""
        outs, setup = self._parts.control.outs, self._parts.setup
        failed = np.zeros(self.num_envs, dtype=bool)
        for i, recovery in enumerate(self._parts.recoveries):
            if outs["mode"][i] == HALT:
                continue
            out, wanted, position = outs[i], batch.action[i], batch.position[i]
            recovering = bool(out["recovering"])
            context = RecoveryContext(
                action=None if np.isnan(wanted[0]) else tuple(wanted.tolist()),
                position=None if np.isnan(position[0]) else tuple(position.tolist()),
                gripper=None if np.isnan(batch.gripper[i]) else float(batch.gripper[i]),
                age=int(out["age"]) if recovering else 0,
                attempt=int(out["attempts"]),
            )
            try:
                if recovering:
                    action[i] = recovery_action(recovery, context, setup)
                else:
                    recovery.observe(context, bool(out["well"]))
            except Exception:  # foreign code: an arm that it leaves without an action halts
                failed[i] = True
                action[i] = np.clip(np.zeros(self._dim), setup.action_low, setup.action_high)
        self._parts.control.apply(_halt, failed)
        return failed

    def _edges(self, active: dict[str, Mask], mode: Ints, changed: Mask) -> dict[str, Mask]:
        """Return what begins at this step, by code or mode."""
        began = {}
        for code, where in active.items():
            old = self._active.get(code)
            new = where.copy() if old is None else where & ~old
            if new.any():
                began[code] = new
        self._active = active
        if changed.any():
            for number, name in enumerate(MODES):
                new = changed & (mode == number)
                if new.any():
                    began[name.value] = new
        return began


def _halt(state: Any) -> None:
    state.controller.mode = HALT
