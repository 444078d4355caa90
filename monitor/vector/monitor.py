"""``VectorMonitor``: N monitors in arrays, each with its own episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.calibration import Calibration
from monitor.config import MonitorConfig
from monitor.errors import DimensionError, MisuseError, misuse
from monitor.faults import Setting, responses
from monitor.gripper import GripperCommands
from monitor.metrics.sums import Scratch
from monitor.pipeline import Monitor, kalman_model
from monitor.records import Evidence, FloatArray, Mode, Step
from monitor.recovery import Retreat
from monitor.score import MUTED
from monitor.vector.belief import VectorBelief
from monitor.vector.evidence import Batch, note, read
from monitor.vector.faults import VectorFaults
from monitor.vector.history import Mask
from monitor.vector.individual import Individuals
from monitor.vector.motion import VectorMotion, VectorProgress
from monitor.vector.rules import VectorPeaks, VectorRule
from monitor.vector.samples import VectorSamples, read_pictures
from monitor.vector.score import (
    HALT,
    LEVELS,
    RECOVER,
    TASK,
    VectorController,
    VectorScore,
)

MODES: Final = (Mode.TASK, Mode.RECOVER, Mode.HALT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorDecision:
    """What the monitor makes of one step of N environments; NaN is unknown in these arrays.

    Attributes:
        step: ``(N,)`` index within each episode.
        mode: ``(N,)`` 0 TASK, 1 RECOVER, 2 HALT; ``modes`` gives the names.
        score: ``(N,)``.
        metrics: ``(N,)`` by metric id, the ids of a single monitor.
        faults: ``(N,)`` bool by fault code; a code that is nowhere is left out.
        began: ``(N,)`` bool by code or mode: the alerts of this step.
        action: ``(N, D)`` finite everywhere; zeros (clipped to the space) where not ``sendable``.
        sendable: ``(N,)`` bool: whether the action may be sent.
        calibrated: whether the score rests on a calibration.
    """

    step: NDArray[np.int64]
    mode: NDArray[np.int64]
    score: FloatArray
    metrics: Mapping[str, FloatArray]
    faults: Mapping[str, Mask]
    began: Mapping[str, Mask]
    action: FloatArray
    sendable: Mask
    calibrated: bool

    @property
    def modes(self) -> list[Mode]:
        """Mode of each environment."""
        return [MODES[code] for code in self.mode.tolist()]


@final
class VectorMonitor:
    """Gives each of N environments what a :class:`monitor.Monitor` of its own would give.

    ``update`` takes a ``Step`` whose fields have a leading axis of N (``policy_error`` and
    ``env_error`` may be sequences); NaN rows stand for a value that one environment lacks.
    Logits may be torch tensors; off the CPU they are summed up on their own device and one
    transfer brings the sums.
    Plugins, ``info_window`` and ``extra`` have no form in arrays: they run environment by
    environment, each as in a monitor of its own, and cost what N single monitors cost; ``extra``
    is a mapping of ``(N,)`` arrays, or a sequence of N mappings.

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
        """Build the stages; arguments as for :class:`monitor.Monitor`.

        Raises:
            DimensionError: no environment, or an action space that does not fit.
            ConfigError: the configuration names something unknown.
        """
        if num_envs < 1:
            message = f"num_envs {num_envs} must be at least 1"
            raise DimensionError(message)
        single = Monitor(
            config, action_low=action_low, action_high=action_high, calibration=calibration
        )
        config = single.config
        self.config: Final = config
        self.calibration: Final = calibration
        self.num_envs: Final = num_envs
        low = self._low = np.array(action_low, dtype=np.float64)
        high = self._high = np.array(action_high, dtype=np.float64)
        n, metrics, recovery = num_envs, config.metrics, config.recovery
        self._neutral = np.clip(np.zeros(len(low)), low, high)
        self._scratch = Scratch()
        self._samples = VectorSamples(low, high, n)
        self._motion = VectorMotion(low, high, n, metrics)
        self._progress = VectorProgress(metrics, recovery.gripper_index, n, len(low))
        noise = None if calibration is None else calibration.noise
        self._belief = VectorBelief(config.belief, kalman_model(config.belief, noise), n)
        setting: Setting = single.plan.setting
        self._faults = VectorFaults(setting, n)
        self._individuals = Individuals(metrics, setting, n)
        self._respond = responses(config.faults)
        self._peaks = VectorPeaks(metrics.peaks, metrics.window, n)
        self._rules = [VectorRule(rule, n) for rule in config.rules]
        self._moved = single.plan.moved
        self._score = VectorScore(single.plan.score, metrics.window, n)
        running = config.controller.aggregation == "running_max"
        self._controller = VectorController(single.limits, running, n)
        self._retreats = [Retreat(recovery, low, high) for _ in range(n)]
        self._safe = np.full((n, 3), np.nan)
        self._commands = GripperCommands.of(recovery)
        self._told = np.full(n, np.nan)
        self._closing = np.zeros(n, dtype=bool)
        self._index = np.zeros(n, dtype=np.int64)
        unknown = np.full(n, np.nan)
        unknown.setflags(write=False)
        self._blank = dict.fromkeys(single.ids, unknown)
        self._succeeded = np.zeros(n, dtype=bool)
        self._active: dict[str, Mask] = {}

    def reset(self, envs: ArrayLike | None = None) -> None:
        """Begin an episode in the environments of an index list or mask; None means all."""
        which = np.zeros(self.num_envs, dtype=bool)
        which[slice(None) if envs is None else np.asarray(envs)] = True
        stages: tuple[Any, ...] = (
            self._samples, self._motion, self._progress, self._belief, self._faults,
            self._score, self._controller, self._peaks, self._individuals, *self._rules,
        )  # fmt: skip
        for stage in stages:
            stage.reset(which)
        for i in np.flatnonzero(which):
            self._retreats[i].reset()
        self._safe[which] = self._told[which] = np.nan
        self._index[which] = 0
        self._closing[which] = False
        self._succeeded[which] = False
        for mask in self._active.values():
            mask[which] = False

    def update(self, step: Step) -> VectorDecision:
        """Judge one step of all environments; never raises on bad data.

        Raises:
            MisuseError: what is given is no ``Step``.
        """
        if not isinstance(step, Step):
            raise MisuseError(misuse(step))
        with np.errstate(invalid="ignore", over="ignore"):
            return self._decide(step)

    def _decide(self, step: Step) -> VectorDecision:
        n = self.num_envs
        batch = read(step, n, len(self._low), self._scratch)
        values = batch.values
        self._samples.update(step.samples, step.chunk, values, batch.faults)
        pictures = read_pictures(step.image, n, batch.faults)
        self._succeeded |= batch.success > 0.5
        self._motion.update(batch.action, batch.place, batch.turn, values)
        progress = self._progress
        progress.update(batch.action, batch.place, batch.goal, batch.gripper, values)
        self._belief.update(batch.goal, batch.alpha, progress.reversal, values)
        self._individuals.measure(step, self._index, values, batch.faults)
        self._peaks.update(values)
        index = self._index.astype(np.float64)
        faults = self._faults.check(batch, step, values, index, self._succeeded, pictures)
        self._individuals.check(self._index, values, self._succeeded, faults)
        score = self._controller.aggregate(
            self._score.update(values, self._succeeded, MUTED, self._moved)
        )
        demand, active = self._demand(values, faults)
        before, tried = self._controller.mode, self._controller.attempts
        mode = self._controller.update(score, demand)
        action, sendable = self._act(batch, mode, score, faults)
        began = self._edges(active, before, tried)
        decision = VectorDecision(
            step=self._index.copy(), mode=mode.copy(), score=score,
            metrics={**self._blank, **values}, faults=faults,
            began=began, action=action, sendable=sendable,
            calibrated=self.calibration is not None,
        )  # fmt: skip
        self._index += 1
        return decision

    def _demand(
        self, values: dict[str, FloatArray], faults: dict[str, Mask]
    ) -> tuple[NDArray[np.int64], dict[str, Mask]]:
        demand = np.zeros(self.num_envs, dtype=np.int64)
        active = {}
        for code, where in faults.items():
            response = self._respond.get(code, "alert")
            if response == "ignore":
                continue
            active[code] = where.copy()
            demand = np.maximum(demand, where * LEVELS[response])
        for one in self._rules:
            fires, rule = one.holds(values, faults), one.rule
            if rule.respond != "ignore" and fires.any():
                note(active, rule.name, fires)
                demand = np.maximum(demand, fires * LEVELS[rule.respond])
        return demand, active

    def _act(
        self, batch: Batch, mode: NDArray[np.int64], score: FloatArray, faults: dict[str, Mask]
    ) -> tuple[FloatArray, Mask]:
        config, controller = self.config, self._controller
        enforce = config.controller.enforce
        usable = ~np.isnan(batch.action[:, 0])
        action = np.where(usable[:, None], batch.action, self._neutral)
        wide = faults.get("ACTION_RANGE")
        if wide is not None:
            clipped = np.clip(action, self._low, self._high)
            action = np.where(wide[:, None], clipped, action)
        sendable = usable | (mode != HALT)
        own = np.zeros(self.num_envs, dtype=bool)
        if enforce:
            halted = mode == HALT
            action[halted] = self._neutral
            sendable &= ~halted
            if config.recovery.enabled:
                own = mode == RECOVER
        policy = ~own if not enforce else ~own & (mode != HALT)
        grip = batch.action[:, config.recovery.gripper_index]
        closing = self._commands.closing_each(np.where(policy & usable, grip, np.nan), self._told)
        self._told = np.where(np.isnan(closing), self._told, grip)
        self._closing = np.where(np.isnan(closing), self._closing, closing > 0.5)
        self._remember(batch, policy, mode, score, faults)
        late = own & (controller.age == config.recovery.steps + 1)
        if late.any():
            self._score.forget(self._moved, late)
        for i in np.flatnonzero(own | (policy & ~usable & (mode != HALT))):
            action[i] = self._lead_back(int(i), batch, bool(own[i]))
        return action, sendable

    def _remember(
        self, batch: Batch, policy: Mask, mode: NDArray[np.int64], score: FloatArray,
        faults: dict[str, Mask],
    ) -> None:  # fmt: skip
        limits, place = self._controller.limits, batch.place
        well = policy & (mode == TASK) & ~(score >= limits.tau_recover - limits.hysteresis)
        for where in faults.values():
            well = well & ~where
        far = np.sqrt(((place - self._safe) ** 2).sum(axis=1)) > self.config.recovery.tolerance_m
        keep = well & ~np.isnan(place[:, 0]) & (np.isnan(self._safe[:, 0]) | far)
        for i in np.flatnonzero(keep):
            x, y, z = place[i].tolist()
            self._retreats[i].remember(Evidence(tcp_position=(x, y, z)))
        self._safe[keep] = place[keep]

    def _lead_back(self, i: int, batch: Batch, recovering: bool) -> FloatArray:
        retreat = self._retreats[i]
        known = not np.isnan(batch.place[i, 0])
        evidence = Evidence(
            tcp_position=tuple(batch.place[i].tolist()) if known else None,
            gripper=None if np.isnan(batch.gripper[i]) else float(batch.gripper[i]),
        )
        retreat.closing = bool(self._closing[i])
        age = int(self._controller.age[i])
        if recovering and age == 1:
            retreat.begin(evidence)
        return retreat.action(evidence, recovering and age <= self.config.recovery.steps)

    def _edges(
        self, active: dict[str, Mask], before: NDArray[np.int64], tried: NDArray[np.int64]
    ) -> dict[str, Mask]:
        began = {}
        for code, where in active.items():
            old = self._active.get(code)
            new = where if old is None else where & ~old
            if new.any():
                began[code] = new
        self._active = active
        now = self._controller.mode
        turned = (now != before) | (self._controller.attempts != tried)
        for level, mode in enumerate(MODES):
            new = turned & (now == level)
            if new.any():
                began[mode.value] = new
        return began
