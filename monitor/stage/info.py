"""What a metric or a fault says about itself: one row of the tables and of the documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from monitor.config import Response

VALLE: Final = "Valle et al., arXiv 2507.17049"
DARABI: Final = "Darabi et al., arXiv 2606.20479"
TRI_INFO: Final = "Tri-Info, arXiv 2606.19998"
OWN: Final = "this project"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInfo:
    """One row of the table of metrics.

    Attributes:
        id: Key of ``decision.metrics``.
        meaning: What it measures, in a few words. Higher is worse unless this says otherwise.
        unit: Unit; "1" for a pure number.
        low: Least value, None where unbounded.
        high: Largest value, None where unbounded.
        warmup: Step from which it is known, counted from 1, for a window of 8.
        needs: Fields of ``Step`` that it is computed from.
        privileged: Whether it needs what only a simulator knows.
        source: Paper, or this project.
        typical: Median, 90 % and 99 % quantile in healthy tabletop pick-and-place at 5 Hz; used
            by the score where there is no calibration. Chosen by hand, wide on purpose, without
            a promise about false alarms. None: not scored without a calibration.
        of_motion: Whether it measures the robot's own motion, so that a retreat makes it void.
        right_after_success: Whether high values are right once the task is solved.
        column: Field of the stage's ``Out`` that holds it; empty for a metric without a stage.
        index: Index into that field where it is an array.
    """

    id: str
    meaning: str
    unit: str = "1"
    low: float | None = 0.0
    high: float | None = 1.0
    warmup: int = 1
    needs: tuple[str, ...]
    privileged: bool = False
    source: str = VALLE
    typical: tuple[float, float, float] | None = None
    of_motion: bool = False
    right_after_success: bool = False
    column: str = ""
    index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultInfo:
    """One row of the table of faults.

    Attributes:
        code: Code of the fault, as in ``decision.faults``.
        family: Name under which ``faults.off`` leaves it out.
        meaning: What it means, in a few words.
        response: Shipped response; ``faults.respond`` in the configuration overrides it.
        field: Field of ``Step`` that shows it.
        source: Paper or report, or this project.
    """

    code: str
    family: str
    meaning: str
    response: Response = "alert"
    field: str = ""
    source: str = OWN
