"""What a fault detector written in Python is; the shipped faults are stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from monitor.records import Evidence, Fault
from monitor.stage import Setup
from monitor.stage.base import make_fault


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """What a detector may look at in one step.

    Attributes:
        step: Index within the episode.
        evidence: What was kept of this step.
        metrics: Metrics of this step, None where unknown.
        succeeded: Whether the task has reported success in this episode.
    """

    step: int
    evidence: Evidence
    metrics: Mapping[str, float | None]
    succeeded: bool


class Detector(Protocol):
    """One family of faults of one robot. Missing input may raise a fault but never clears one."""

    def check(self, context: StepContext) -> list[Fault]:
        """Return the faults present at this step."""

    def reset(self) -> None:
        """Begin an episode; identical to a new instance."""


DetectorFactory = Callable[[Setup], Detector]


def fault(
    code: str,
    context: StepContext,
    message: str,
    *,
    field: str | None = None,
    value: Any = None,
    **detail: Any,
) -> Fault:
    """Return a fault with its step, the field of the step that shows it, and the value there."""
    return make_fault(code, context.step, message, field or "", value=value, **detail)
