"""The stateful middle of a monitor: it makes of a step's evidence all but the decision."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from struct import pack_into
from typing import Final, final

import numpy as np

from monitor.core import judge, measure
from monitor.core.plan import Judged, Plan
from monitor.core.rows import ACTION_IDS, IDS, Rows
from monitor.faults import Scene, plugin_detectors
from monitor.faults.behaviour import dropped, stalled, unanswered
from monitor.faults.data import DataFaults
from monitor.faults.policy import late, mis_scaled, off_vocabulary
from monitor.faults.vision import black, bypassed, frozen
from monitor.metrics.information import Information
from monitor.metrics.instability import instability
from monitor.metrics.pooling import Peaks
from monitor.reading.actions import normalise
from monitor.records import Belief, Evidence, Fault, Numbers

UNKNOWN_PLACE: Final = (nan,) * 3
UNKNOWN_TURN: Final = (nan,) * 4


@final
class Core:
    """One environment's :class:`monitor.core.rows.Rows`, in records."""

    def __init__(self, plan: Plan) -> None:
        setting, metrics = plan.setting, plan.config.metrics
        dim = len(setting.action_low)
        self._setting = setting
        self._rows = Rows(plan, 1)
        self._blank = dict.fromkeys(plan.ids)
        self._information = information_of(plan)
        self._peaks = Peaks(metrics.peaks, metrics.window)
        self._data = None if "data" in setting.config.off else DataFaults(setting)
        self._foreign = plugin_detectors(setting)
        self._no_action = (nan,) * dim
        self._given, self._seen = np.zeros((1, self._rows.given)), np.zeros((1, self._rows.seen))
        self._given_format, self._seen_format = f"{self._rows.given}d", f"{self._rows.seen}d"
        self._metrics = np.zeros((1, measure.COLUMNS))
        self._found = np.zeros((1, judge.COLUMNS))
        self.reset()

    @property
    def pooled(self) -> Mapping[str, float]:
        """Peak surprise over the window by signal."""
        (row,) = self._rows.pooled.tolist()
        return {name: s for name, s in zip(self._rows.signals, row, strict=True) if s == s}

    def reset(self) -> None:
        """Begin an episode; the core is then as new."""
        self._rows.reset()
        self._peaks.reset()
        if self._information is not None:
            self._information.reset()
        for detector in self._foreign:
            detector.reset()

    def forget_moved(self) -> None:
        """Start the score's pools afresh after a retreat has moved the robot."""
        self._rows.forget_moved()

    def per_dimension(self) -> dict[str, Numbers]:
        """Return A-PI, A-VI and A-AI per action dimension; empty while unknown."""
        actions = self._rows.actions(0)
        if actions is None:
            return {}
        low, high = self._setting.action_low, self._setting.action_high
        parts = instability(normalise(actions, low, high))
        return {
            names[0]: tuple(part.tolist()) for names, part in zip(ACTION_IDS, parts, strict=True)
        }

    def update(self, evidence: Evidence, step: int, succeeded: bool) -> Judged:
        """Take one step in.

        Args:
            evidence: of the step.
            step: its index within the episode.
            succeeded: whether the task has reported success up to and with this step.
        """
        signals, rows = evidence.signals, self._rows
        action, place, turn = evidence.action, evidence.tcp_position, evidence.tcp_quaternion
        action = self._no_action if action is None else action
        place = UNKNOWN_PLACE if place is None else place
        distance, gripper = evidence.goal_distance, evidence.gripper
        distance = nan if distance is None else distance
        gripper = nan if gripper is None else gripper
        alpha = signals.get("alpha")
        pack_into(
            self._given_format, self._given.data, 0, distance, gripper, nan if alpha is None else alpha, *place,
            *(UNKNOWN_TURN if turn is None else turn), *action,
        )  # fmt: skip
        rows.measure(self._given, self._metrics)
        (out,) = self._metrics.tolist()
        values: dict[str, float | None] = self._blank.copy()
        values.update(signals)
        values.update(zip(IDS, [None if x != x else x for x in out], strict=False))
        if self._information is not None:
            self._information.update(evidence, values)
        self._peaks.update(values)
        get = values.get
        mass, outside = get("action_mass"), get("tokens_outside")
        latency, image, logits = evidence.latency_s, evidence.image_id, evidence.logits_id
        success, std = evidence.success, evidence.image_std
        pack_into(
            self._seen_format, self._seen.data, 0, out[measure.STILL], nan if mass is None else mass,
            nan if outside is None else outside, distance, gripper,
            nan if latency is None else latency, nan if success is None else success,
            nan if image is None else image, nan if std is None else std,
            nan if logits is None else logits, *place, *action,
            *[nan if (x := get(name)) is None else x for name in rows.signals],
        )  # fmt: skip
        rows.judge(self._seen, self._found)
        (found,) = self._found.tolist()
        faults: list[Fault] = []
        quiet = evidence.action is not None and evidence.decode_ok and not evidence.problems
        if (
            found[judge.FOUND] or self._foreign or not quiet
            or evidence.policy_error is not None or evidence.env_error is not None
        ):  # fmt: skip
            scene = Scene(step=step, evidence=evidence, metrics=values, succeeded=succeeded)
            faults = self._faults(scene, found)
        score = found[judge.SCORE]
        return Judged(values, faults, score if score == score else None, _belief(out))

    def _faults(self, scene: Scene, found: list[float]) -> list[Fault]:
        """Return the faults in the order of the shipped detectors, then the plugins'."""
        faults = [] if self._data is None else self._data.check(scene)
        if found[judge.BYPASS]:
            faults.append(bypassed(scene, int(found[judge.BYPASS])))
        if found[judge.BLACK]:
            faults.append(black(scene))
        if found[judge.FROZEN]:
            faults.append(frozen(scene, int(found[judge.FROZEN]), found[judge.PATH]))
        if found[judge.STALL]:
            faults.append(stalled(scene, int(found[judge.STALL])))
        if found[judge.DROP]:
            first = int(self._rows.first_success[0])
            faults.append(dropped(scene, first, int(found[judge.DROP])))
        if found[judge.GRIP]:
            closing, start = found[judge.CLOSED] > 0.0, found[judge.GRIP_START]
            faults.append(unanswered(scene, closing, int(found[judge.GRIP]), start))
        if found[judge.VOCABULARY]:
            faults.append(off_vocabulary(scene))
        if found[judge.OVER]:
            faults.append(mis_scaled(scene, found[judge.OVER], self._setting))
        if found[judge.LATELY]:
            faults.append(late(scene, int(found[judge.LATELY]), self._setting))
        for detector in self._foreign:
            faults.extend(detector.check(scene))
        return faults


def _belief(out: list[float]) -> Belief | None:
    d, v, a, b, c, innovation, variance = out[measure.BELIEF : measure.REVERSAL]
    if d != d:
        return None
    known = innovation == innovation
    return Belief(
        distance=d, velocity=v, var_distance=a, cov=b, var_velocity=c,
        innovation=innovation if known else None, innovation_var=variance if known else None,
        nis=out[measure.NIS] if known else None,
    )  # fmt: skip


def information_of(plan: Plan) -> Information | None:
    """Return the stage of the Tri-Info signals, None where they are left out."""
    window = plan.config.metrics.info_window
    if window is None:
        return None
    low, high = plan.setting.action_low, plan.setting.action_high
    return Information(window, tuple(np.maximum(np.abs(low), np.abs(high))[:3].tolist()))
