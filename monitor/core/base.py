"""What the monitor's core is: it makes of a step's evidence all but the decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from monitor.belief.kalman import KalmanModel
from monitor.config import MonitorConfig
from monitor.faults import Setting
from monitor.records import Belief, Evidence, Fault, Numbers
from monitor.score import Score


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """What a core is built from.

    Attributes:
        config: of the monitor.
        setting: of the fault detectors; it has the action space, the window and the gripper.
        model: of the distance filter.
        score: tail tables, weights and how signals are combined.
        moved: signals that a retreat makes void.
        ids: of the metrics, those of plugins last, without the peaks.
    """

    config: MonitorConfig
    setting: Setting
    model: KalmanModel
    score: Score
    moved: frozenset[str]
    ids: tuple[str, ...]


class Judged(NamedTuple):
    """What a core makes of one step.

    Attributes:
        metrics: by id, None while unknown.
        faults: present at this step.
        score: before the controller's aggregation, None while unknown.
        belief: of the distance filter, None before the first distance.
    """

    metrics: dict[str, float | None]
    faults: list[Fault]
    score: float | None
    belief: Belief | None


class Core(Protocol):
    """The stateful middle of a monitor; the same numbers from every implementation."""

    @property
    def pooled(self) -> Mapping[str, float]:
        """Peak surprise over the window by signal."""

    def reset(self) -> None:
        """Begin an episode; the core is then as new."""

    def update(self, evidence: Evidence, step: int, succeeded: bool) -> Judged:
        """Take one step in.

        Args:
            evidence: of the step.
            step: its index within the episode.
            succeeded: whether the task has reported success up to and with this step.
        """

    def forget_moved(self) -> None:
        """Start the score's pools afresh after a retreat has moved the robot."""

    def per_dimension(self) -> dict[str, Numbers]:
        """Return A-PI, A-VI and A-AI per action dimension; empty while unknown."""
