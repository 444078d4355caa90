"""The compiled stages of N environments: a row of numbers for each, NaN for unknown."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any, Final, final

import numpy as np

from monitor.core import judge, measure
from monitor.core.plan import Plan
from monitor.faults import FAMILIES, check_families
from monitor.metrics.instability import jerk_weights
from monitor.records import FloatArray
from monitor.score import MUTED

ACTION_IDS: Final = tuple((f"A-{o}", f"A-{o}_p", f"A-{o}_o") for o in ("PI", "VI", "AI"))
"""Of all of the action, its translation and its rotation, by order of difference."""
TCP_IDS: Final = tuple((f"TCP-{o}", f"TCP-{o}_p", f"TCP-{o}_o") for o in ("PI", "VI", "AI"))
IDS: Final = (
    *(name for k in range(3) for name in (*ACTION_IDS[k], *TCP_IDS[k])),
    "TI", "STILL", "TCP-path", "TCP-net", "REV", "PROG", "OT",
    "NIS", "H", "skf", "prog", "mono", "eff", "osc", "U",
)  # fmt: skip
"""Metrics in the order of the columns that :meth:`Rows.measure` writes."""

COMBINE: Final = {
    "max": judge.MAX,
    "mean_top2": judge.MEAN_TOP2,
    "weights": judge.BY_WEIGHT,
}


@final
class Rows:
    """What N environments remember, and the two compiled passes over it.

    Attributes:
        signals: ids of the score's signals, in the order of their columns.
        given: columns that :meth:`measure` reads, D of them the action.
        seen: columns that :meth:`judge` reads, the signals last.
    """

    def __init__(self, plan: Plan, n: int) -> None:
        check_families(plan.setting.config)
        self._window = plan.config.metrics.window
        dim = len(plan.setting.action_low)
        self.signals: Final = tuple(plan.scoring.surprises)
        self.given: Final = measure.ACTION + dim
        self.seen: Final = judge.ACTION + dim + len(self.signals)
        self._dim, self._n = dim, n
        self._measuring = _measure_setting(plan)
        self._judging, self._tables = _judge_setting(plan)
        self._first = measure.blank_state(dim, self._window)
        self._first_judged = judge.blank_state(dim, len(self.signals), self._window)
        self._measured = np.tile(self._first, (n, 1))
        self._judged = np.tile(self._first_judged, (n, 1))
        *_, self._pooled, self._pools, _ = judge.windows(dim, len(self.signals), self._window)
        # What is compiled is loaded now: it may take seconds, which no step may.
        measure.load()
        judge.load()

    def reset(self, which: Any = slice(None)) -> None:
        """Begin an episode in some environments."""
        self._measured[which] = self._first
        self._judged[which] = self._first_judged

    def measure(self, given: FloatArray, out: FloatArray) -> None:
        """Write the metrics ``(N, 41)`` of what is given, ``(N, given)``."""
        _run(
            measure.load(), measure.measure, self._measured, given, out, self._measuring,
            self._dim, self._window,
        )  # fmt: skip

    def judge(self, seen: FloatArray, out: FloatArray) -> None:
        """Write faults and scores ``(N, 15)`` of what is seen, ``(N, seen)``."""
        _run(
            judge.load(), judge.judge, self._judged, seen, out, self._judging, *self._tables,
            self._dim, len(self.signals), self._window,
        )  # fmt: skip

    def forget_moved(self, which: Any = slice(None)) -> None:
        """Start the score's pools of some environments afresh after a retreat."""
        count = len(self.signals)
        state = self._judged[which]
        columns = state[:, self._pooled : self._pools].reshape(len(state), 4, count)
        moved = self._judging[-2 * count : -count] > 0.0
        columns[:, 0, moved] = nan
        columns[:, 1:3, moved] = 0.0
        columns[:, 3] = columns[:, 1] > 0.0
        state[:, self._pooled : self._pools] = columns.reshape(len(state), -1)
        state[:, judge.PAUSE] = self._window
        self._judged[which] = state

    @property
    def pooled(self) -> FloatArray:
        """Peak surprise over the window, ``(N, S)``."""
        count = len(self.signals)
        return self._judged[:, self._pooled : self._pooled + count].copy()

    @property
    def first_success(self) -> FloatArray:
        """Step of the first success, ``(N,)``."""
        return self._judged[:, judge.FIRST_SUCCESS].copy()

    def actions(self, i: int) -> FloatArray | None:
        """Return the window's actions of environment ``i``, ``(W, D)``, oldest first."""
        state = self._measured[i]
        if state[measure.RUN_ACTION] < self._window:
            return None
        begin, end = measure.windows(self._dim, self._window)[11:13]
        ring = state[begin:end].reshape(self._window, self._dim)
        oldest = int(state[measure.STEPS]) % self._window
        return np.concatenate([ring[oldest:], ring[:oldest]])


def _run(
    compiled: Callable[..., None] | None, plain: Callable[..., None],
    states: FloatArray, given: FloatArray, out: FloatArray, *rest: Any,
) -> None:  # fmt: skip
    if compiled is not None:
        compiled(states, given, out, *rest)
        return
    # The same function on lists of floats, which plain Python reads faster than arrays.
    rows, found = states.tolist(), out.tolist()
    plain(rows, given.tolist(), found, *(r if isinstance(r, int) else r.tolist() for r in rest))
    states[:], out[:] = rows, found


def _measure_setting(plan: Plan) -> FloatArray:
    metrics, belief, model = plan.config.metrics, plan.config.belief, plan.model
    low, high = plan.setting.action_low, plan.setting.action_high
    fixed = [
        metrics.still_path_m,
        metrics.gripper_change,
        plan.setting.gripper.column(len(low)),
        metrics.reversal_floor_m,
        metrics.reversal_cosine,
        nan if metrics.goal_scale_m is None else metrics.goal_scale_m,
        metrics.warmup == "zeros",
        model.q_distance,
        model.q_velocity,
        model.r,
        model.initial_distance,
        model.initial_velocity,
        belief.epsilon,
        *belief.entropy_weights,
        *belief.u_weights,
    ]
    jerk = jerk_weights(metrics.window) / metrics.ti_dt_s**3
    span = np.where(high > low, high - low, 1.0)
    return np.concatenate([fixed, jerk, low, high, span])


def _judge_setting(plan: Plan) -> tuple[FloatArray, list[FloatArray]]:
    setting, scoring = plan.setting, plan.scoring
    faults, gripper = setting.config, setting.gripper
    low, high = setting.action_low, setting.action_high
    limits = list(setting.translation_limits)
    surprises, weights = scoring.surprises, scoring.weights
    fixed = [
        *(name not in faults.off for name in FAMILIES),
        faults.stall_steps,
        faults.stall_goal_m,
        setting.still_path_m,
        gripper.column(len(low)),
        gripper.opens,
        gripper.closes,
        gripper.relative,
        faults.gripper_steps,
        setting.gripper_change,
        faults.bin_mass,
        min(len(limits), len(low)),
        faults.unnorm_share,
        setting.deadline_s,
        faults.late_steps,
        faults.blind_steps,
        faults.black_std,
        faults.frozen_steps,
        COMBINE[scoring.combine],
    ]
    slack = faults.action_tolerance * (high - low)
    tables = [one.tables for one in surprises.values()]
    parts = [np.stack([np.concatenate([[0.0], v]), k, s]) for v, k, s in tables]
    whole = np.concatenate([*parts, np.zeros((3, 0))], axis=1)
    ends = np.cumsum([part.shape[1] for part in parts])
    names = list(surprises)
    mutes, moves = ([float(name in some) for name in names] for some in (MUTED, plan.moved))
    padded = (limits + [nan] * len(low))[: len(low)]
    columns: list[Any] = [
        fixed,
        low - slack,
        high + slack,
        padded,
        [weights[n] for n in names],
        mutes,
        moves,
        ends,
    ]
    return np.concatenate(columns), [row.copy() for row in whole]
