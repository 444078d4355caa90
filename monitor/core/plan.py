"""What goes into the monitor's core and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from monitor.belief.kalman import KalmanModel
from monitor.config import MonitorConfig
from monitor.faults import Setting
from monitor.records import Belief, Fault
from monitor.score import Scoring


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """What a core is built from.

    Attributes:
        config: of the monitor.
        setting: of the fault detectors; it has the action space, the window and the gripper.
        model: of the distance filter.
        scoring: tail tables, weights and how signals are combined.
        moved: signals that a retreat makes void.
        ids: of the metrics, those of plugins last, without the peaks.
    """

    config: MonitorConfig
    setting: Setting
    model: KalmanModel
    scoring: Scoring
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
