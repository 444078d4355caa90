"""What a grade of execution is made of: steadiness, time to the goal, time at the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

import numpy as np

from monitor.study.quality.judge import Quality, judge_run
from monitor.study.runs import Episode, Run

__all__ = ["INDICATORS", "START_RADIUS_M", "Measured", "measure_run", "start_steps", "task_steps"]

INDICATORS: Final = ("velocity", "acceleration", "task_time", "start_time")
START_RADIUS_M: Final = 0.05
"""Radius of the start region around the tool's first position; the paper's is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One episode, before anything is scaled.

    Attributes:
        episode: its number.
        scene: its scene.
        outcome: "success", "failure", "halted" or "error"; the last has no grade.
        steps: that it took in all.
        collisions: None where they cannot be seen.
        of: values by indicator, smaller = better: U_v and U_alpha (squared rad or m per step),
            steps until the task was solved (infinite: it was not), steps in the start region; None
            where unknown.
    """

    episode: int
    scene: int
    outcome: str
    steps: int
    collisions: int | None
    of: dict[str, float | None]

    @property
    def failed(self) -> bool:
        """Return whether the task was not solved, a halt included."""
        return self.outcome != "success"


def measure_run(run: Run) -> list[Measured]:
    """Measure every finished episode."""
    return [_measured(*pair) for pair in zip(run.episodes, judge_run(run), strict=True)]


def _measured(episode: Episode, quality: Quality) -> Measured:
    moved, safety = quality.execution, quality.safety
    return Measured(
        episode=episode.number,
        scene=episode.scene,
        outcome=episode.outcome,
        steps=episode.length,
        collisions=None if safety is None else safety.collisions,
        of={
            "velocity": None if moved is None else moved.u_v,
            "acceleration": None if moved is None else moved.u_alpha,
            "task_time": task_steps(episode),
            "start_time": start_steps([step.get("tcp_position") for step in episode.steps]),
        },
    )


def task_steps(episode: Episode) -> float:
    """Steps until the task was first solved; infinite where it was not solved in the end.

    What an episode that runs on does afterwards is not part of the task. Where the trace does not
    say when, all of its steps count.
    """
    if episode.outcome != "success":
        return inf
    first = episode.record.get("first_success")
    if first is not None:
        return float(first) + 1.0
    return 0.0 if episode.record.get("success_at_reset") else float(episode.length)


def start_steps(places: Sequence[Any]) -> float | None:
    """Return the number of steps until the tool leaves the start region; all where it stays.

    Args:
        places: ``(T, 3)`` of the tool by step, metres.

    Returns:
        None where its place is not always known.

    >>> start_steps([[0.0, 0.0, 0.0], [0.04, 0.0, 0.0], [0.08, 0.0, 0.0]])
    2.0
    """
    try:
        way = np.array(places, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError):
        return None
    if way.ndim != 2 or way.size == 0 or not np.isfinite(way).all():
        return None
    outside = np.linalg.norm(way - way[0], axis=1) > START_RADIUS_M
    return float(outside.argmax()) if outside.any() else float(len(way))
