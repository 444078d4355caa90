"""The core in plain Python: one stage after the other, each readable by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, final

import numpy as np

from monitor.belief.filter import BeliefFilter
from monitor.belief.groundcontrol import EpisodeScore
from monitor.belief.kalman import log_det
from monitor.core.base import Judged, Plan
from monitor.faults import Scene, build_detectors
from monitor.maker import maker
from monitor.metrics.information import Information
from monitor.metrics.motion import Motion
from monitor.metrics.pooling import Peaks
from monitor.metrics.progress import Progress
from monitor.records import Evidence, Numbers
from monitor.score import MUTED

make_scene = maker(Scene)


class _Stage(Protocol):
    def reset(self) -> None: ...


@final
class PlainCore:
    """What runs where numba is not installed, and what the compiled core is checked against."""

    def __init__(self, plan: Plan) -> None:
        config, setting = plan.config, plan.setting
        metrics, low, high = config.metrics, setting.action_low, setting.action_high
        self._blank = dict.fromkeys(plan.ids)
        self._information = information_of(plan)
        self._peaks = Peaks(metrics.peaks, metrics.window)
        self._motion = Motion(low, high, metrics.window, metrics.ti_dt_s, metrics.warmup == "zeros")
        gripper = setting.gripper.column(len(low))
        self._progress = Progress(metrics, None if gripper < 0 else gripper)
        self._filter = BeliefFilter(plan.model)
        self._episode = EpisodeScore(config.belief.entropy_weights, config.belief.u_weights)
        self._epsilon = config.belief.epsilon
        self._detectors = build_detectors(setting)
        self._score = plan.score
        self._moved = plan.moved
        self.reset()

    @property
    def pooled(self) -> Mapping[str, float]:
        """Peak surprise over the window by signal."""
        return self._score.pooled

    def reset(self) -> None:
        """Begin an episode."""
        stages: tuple[_Stage, ...] = (
            self._motion, self._progress,
            *([] if self._information is None else [self._information]),
            self._peaks, self._filter, self._episode, self._score, *self._detectors,
        )  # fmt: skip
        for stage in stages:
            stage.reset()

    def update(self, evidence: Evidence, step: int, succeeded: bool) -> Judged:
        """Take one step in."""
        values = self._measure(evidence)
        scene = make_scene(step=step, evidence=evidence, metrics=values, succeeded=succeeded)
        faults = [one for detector in self._detectors for one in detector.check(scene)]
        score = self._score.update(values, MUTED if succeeded else frozenset())
        return Judged(values, faults, score, self._filter.belief)

    def forget_moved(self) -> None:
        """Start the score's pools afresh."""
        self._score.forget(self._moved)

    def per_dimension(self) -> dict[str, Numbers]:
        """Return A-PI, A-VI and A-AI per action dimension; empty while unknown."""
        return self._motion.per_dimension()

    def _measure(self, evidence: Evidence) -> dict[str, float | None]:
        values: dict[str, float | None] = self._blank.copy()
        values.update(evidence.signals)
        self._motion.update(evidence, values)
        self._progress.update(evidence, values)
        if self._information is not None:
            self._information.update(evidence, values)
        belief = self._filter.update(evidence.goal_distance)
        determinant = None
        if belief is not None:
            determinant = log_det(belief, self._epsilon)
            values["NIS"] = belief.nis
        self._episode.update(
            evidence.goal_distance,
            determinant,
            belief,
            values["alpha"],
            self._progress.reversal,
            values,
        )
        self._peaks.update(values)
        return values


def information_of(plan: Plan) -> Information | None:
    """Return the stage of the Tri-Info signals, None where they are left out."""
    window = plan.config.metrics.info_window
    if window is None:
        return None
    low, high = plan.setting.action_low, plan.setting.action_high
    return Information(window, tuple(np.maximum(np.abs(low), np.abs(high))[:3].tolist()))
