"""A monitor's core written a second time, one stage after the other, to check ours against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, final

from monitor.belief.filter import BeliefFilter
from monitor.belief.kalman import log_det
from monitor.core.core import information_of
from monitor.core.plan import Judged, Plan
from monitor.faults import FAMILIES, Scene, plugin_detectors
from monitor.faults.data import DataFaults
from monitor.metrics.pooling import Peaks
from monitor.records import Evidence, Numbers
from monitor.score import MUTED
from tests.monitor.core.reference.detectors import DETECTORS
from tests.monitor.core.reference.episode import EpisodeScore
from tests.monitor.core.reference.motion import Motion
from tests.monitor.core.reference.progress import Progress
from tests.monitor.core.reference.score import Score


class _Stage(Protocol):
    def reset(self) -> None: ...


@final
class ReferenceCore:
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
        shipped = {"data": DataFaults, **DETECTORS}
        self._detectors = [
            *(shipped[name](setting) for name in FAMILIES if name not in setting.config.off),
            *plugin_detectors(setting),
        ]
        self._score = Score(plan.scoring, metrics.window)
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
        scene = Scene(step=step, evidence=evidence, metrics=values, succeeded=succeeded)
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
