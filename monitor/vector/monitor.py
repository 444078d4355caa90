"""``VectorMonitor``: N monitors in arrays, each with its own episode."""

from __future__ import annotations

from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike

from monitor.calibration import Calibration
from monitor.config import MonitorConfig
from monitor.errors import DimensionError, MisuseError, misuse
from monitor.faults import responses
from monitor.pipeline import Monitor
from monitor.reading.batch import Batch, BatchReader, note
from monitor.records import FloatArray, Step
from monitor.vector.controller import HALT, LEVELS, NONE, RECOVER, TASK, VectorController
from monitor.vector.core import VectorCore
from monitor.vector.decision import MODES, VectorDecision
from monitor.vector.faults import add_data_faults
from monitor.vector.history import Ints, Mask
from monitor.vector.individual import Individuals
from monitor.vector.retreats import VectorRetreats
from monitor.vector.rules import VectorPeaks, VectorRule


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
        config, setting = single.config, single.plan.setting
        self.config: Final = config
        self.calibration: Final = calibration
        self.num_envs: Final = num_envs
        low, high = self._low, self._high = setting.action_low, setting.action_high
        n, metrics = num_envs, config.metrics
        self._neutral = np.clip(np.zeros(len(low)), low, high)
        self._reader = BatchReader(low, high, n)
        self._core = VectorCore(single.plan, n)
        self._individuals = Individuals(metrics, setting, n)
        self._sees_data = "data" not in config.faults.off
        self._respond = responses(config.faults)
        self._peaks = VectorPeaks(metrics.peaks, metrics.window, n)
        self._rules = [VectorRule(rule, n) for rule in config.rules]
        running = config.controller.aggregation == "running_max"
        self._controller = VectorController(single.limits, running, n)
        self._calm_below = single.limits.tau_recover - single.limits.hysteresis
        self._retreats = VectorRetreats(config.recovery, config.robot.gripper, low, high, n)
        self._index = np.zeros(n, dtype=np.int64)
        unknown = np.full(n, np.nan)
        unknown.setflags(write=False)
        self._blank = dict.fromkeys(single.ids, unknown)
        self._succeeded = np.zeros(n, dtype=bool)
        self._active: dict[str, Mask] = {}

    def reset(self, envs: ArrayLike | None = None) -> None:
        """Begin an episode in the environments of an index list or mask; None means all."""
        which = np.full(self.num_envs, envs is None)
        chosen = np.asarray(() if envs is None else envs)
        if chosen.size:  # an empty list is an array of floats, which are no indices
            which[chosen] = True
        stages: tuple[Any, ...] = (
            self._reader, self._core, self._controller, self._retreats, self._peaks,
            self._individuals, *self._rules,
        )  # fmt: skip
        for stage in stages:
            stage.reset(which)
        self._index[which] = 0
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
        core, controller = self._core, self._controller
        batch = self._reader.read(step)
        values = batch.values
        self._succeeded |= batch.success > 0.5
        core.measure(batch, values)
        self._individuals.measure(step, self._index, values, batch.faults)
        self._peaks.update(values)
        score = controller.aggregate(core.judge(batch, values))
        faults: dict[str, Mask] = {}
        if self._sees_data:
            faults = batch.faults
            add_data_faults(step, batch.action, faults)
        core.faults(faults)
        self._individuals.check(self._index, values, self._succeeded, faults)
        demand, active = self._demand(values, faults)
        before, tried = controller.mode, controller.attempts
        mode = controller.update(score, demand)
        action, sendable = self._act(batch, mode, score, faults)
        decision = VectorDecision(
            step=self._index.copy(),
            mode=mode.copy(),
            score=score,
            metrics={**self._blank, **values},
            faults=faults,
            began=self._edges(active, before, tried),
            action=action,
            sendable=sendable,
            calibrated=self.calibration is not None,
        )
        self._index += 1
        return decision

    def _demand(
        self, values: dict[str, FloatArray], faults: dict[str, Mask]
    ) -> tuple[Ints, dict[str, Mask]]:
        demand = np.zeros(self.num_envs, dtype=np.int64)
        active = {}
        for code, where in faults.items():
            response = self._respond.get(code, "alert")
            if response == "ignore":
                continue
            active[code] = where.copy()
            if LEVELS[response] != NONE:
                demand = np.maximum(demand, where * LEVELS[response])
        for one in self._rules:
            fires, rule = one.holds(values, faults), one.rule
            if rule.respond != "ignore" and fires.any():
                note(active, rule.name, fires)
                demand = np.maximum(demand, fires * LEVELS[rule.respond])
        return demand, active

    def _act(
        self, batch: Batch, mode: Ints, score: FloatArray, faults: dict[str, Mask]
    ) -> tuple[FloatArray, Mask]:
        """Return the actions and where they may be sent."""
        config, retreats = self.config, self._retreats
        enforce = config.controller.enforce
        action = batch.action.copy()
        wide = faults.get("ACTION_RANGE")
        if wide is not None:
            action[wide] = np.clip(action[wide], self._low, self._high)
        usable = ~np.isnan(action[:, 0])
        live, task = mode != HALT, mode == TASK
        sendable = live if enforce else usable | live
        action[~(sendable & usable)] = self._neutral
        own = (mode == RECOVER) & (enforce and config.recovery.enabled)
        policy = live & ~own if enforce else ~own
        retreats.note_actions(batch.action, policy & usable)
        well = task & policy & ~(score >= self._calm_below)
        for where in faults.values():
            well &= ~where
        retreats.remember(batch.position, well)
        lost = own | (live & ~usable)
        if lost.any():
            self._lead(np.flatnonzero(lost), own, batch, action)
        return action, sendable

    def _lead(self, envs: Ints, own: Mask, batch: Batch, action: FloatArray) -> None:
        """Write the actions of ``envs``: of a retreat where it is its ``own``, else to stay."""
        age, steps = self._controller.age, self.config.recovery.steps
        late = own & (age == steps + 1)
        if late.any():
            self._core.forget_moved(late)
        starts = np.flatnonzero(own & (age == 1))
        self._retreats.begin(starts, batch.position[starts])
        place, gripper = batch.position[envs], batch.gripper[envs]
        moving = own[envs] & (age[envs] <= steps)
        action[envs] = self._retreats.actions(envs, place, gripper, moving)

    def _edges(self, active: dict[str, Mask], before: Ints, tried: Ints) -> dict[str, Mask]:
        began = {}
        for code, where in active.items():
            old = self._active.get(code)
            new = where.copy() if old is None else where & ~old
            if new.any():
                began[code] = new
        self._active = active
        now = self._controller.mode
        turned = (now != before) | (self._controller.attempts != tried)
        if turned.any():
            for level, mode in enumerate(MODES):
                new = turned & (now == level)
                if new.any():
                    began[mode.value] = new
        return began
