"""State of a run for the views, kept step by step."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

from monitor.records import Alert, Mode
from monitor.rollout.records import EpisodeResult, EpisodeSpec, EpisodeStart, RunStart, StepRecord

__all__ = ["EpisodeProgress", "FinishedEpisode", "Progress", "horizon_of"]

KEPT_ALERTS: Final = 50


@dataclass
class EpisodeProgress:
    """The current episode.

    Attributes:
        start: beginning of the episode.
        horizon: number of steps after which the environment ends it; None if unknown.
        scores: scores per step; None while unknown.
        modes: modes per step.
        distances: distances to the goal per step, metres; None while unknown.
        metrics: values per step by metric id.
        last: most recent step.
    """

    start: EpisodeStart
    horizon: int | None
    scores: list[float | None] = field(default_factory=list)
    modes: list[Mode] = field(default_factory=list)
    distances: list[float | None] = field(default_factory=list)
    metrics: dict[str, list[float | None]] = field(default_factory=dict)
    last: StepRecord | None = None
    began: float = field(default_factory=perf_counter)

    def add(self, record: StepRecord) -> None:
        """Add one step."""
        decision = record.decision
        self.last = record
        self.scores.append(decision.score)
        self.modes.append(decision.mode)
        self.distances.append(decision.evidence.goal_distance)
        for name, value in decision.metrics.items():
            self.metrics.setdefault(name, []).append(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedEpisode:
    """A row of the table of finished episodes; without curves if an earlier process ran it."""

    result: EpisodeResult
    scores: Sequence[float | None] = ()
    modes: Sequence[Mode] = ()


@dataclass
class Progress:
    """The run so far: an observer that the views read.

    Attributes:
        total: number of episodes of the run; 0 until known.
        finished: finished episodes, in order.
        current: current episode, or the last one.
        alerts: (scene, alert), newest last.
    """

    total: int = 0
    finished: list[FinishedEpisode] = field(default_factory=list)
    current: EpisodeProgress | None = None
    alerts: deque[tuple[int, Alert]] = field(default_factory=lambda: deque(maxlen=KEPT_ALERTS))
    specs: Sequence[EpisodeSpec] = ()
    walls: list[float] = field(default_factory=list)

    def on_run(self, start: RunStart) -> None:
        """Set the number of episodes and those that are done."""
        self.specs = start.specs
        self.total = len(start.specs)
        self.finished = [FinishedEpisode(result=result) for result in start.done]

    def on_start(self, start: EpisodeStart) -> None:
        """Begin a new current episode."""
        self.current = EpisodeProgress(start, horizon_of(start.env))
        self.total = max(self.total, start.episode + 1)

    def on_step(self, record: StepRecord) -> None:
        """Add one step of it."""
        if self.current is None:
            return
        self.current.add(record)
        scene = self.current.start.spec.scene
        self.alerts.extend((scene, alert) for alert in record.decision.alerts)

    def on_end(self, result: EpisodeResult) -> None:
        """Move it to the finished episodes."""
        now = self.current
        self.walls.append(result.wall_s)
        self.finished.append(
            FinishedEpisode(
                result=result,
                scores=() if now is None else now.scores,
                modes=() if now is None else now.modes,
            )
        )

    @property
    def running(self) -> bool:
        """Whether an episode is running."""
        if self.current is None:
            return False
        ended = self.finished[-1].result.episode if self.finished else None
        return ended != self.current.start.episode

    @property
    def episodes_done(self) -> float:
        """Number of finished episodes plus the fraction of the running one."""
        share = 0.0
        if self.running and self.current is not None and self.current.horizon:
            share = min(1.0, len(self.current.scores) / self.current.horizon)
        return len(self.finished) + share

    def seconds_left(self) -> float | None:
        """Estimate the remaining time from this process's pace; None before there is one."""
        now = self.current
        share = self.episodes_done - len(self.finished)
        spent = perf_counter() - now.began if self.running and now is not None else 0.0
        pace = sum(self.walls) + spent, len(self.walls) + share
        if pace[1] < 0.1:  # too little to estimate from
            return None
        return max(0.0, (self.total - self.episodes_done) * pace[0] / pace[1])


def horizon_of(env: Any) -> int | None:
    """Return the number of steps after which an environment ends an episode, if it has one."""
    inner = getattr(env, "unwrapped", env)
    found = getattr(inner, "horizon_steps", None)
    if found is None:
        found = getattr(getattr(env, "spec", None), "max_episode_steps", None)
    return int(found) if isinstance(found, int) and found > 0 else None
