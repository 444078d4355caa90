"""What a stage is: state, limits and outputs as dataclasses, and one function over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from monitor.records import Evidence, Fault
from monitor.stage.info import FaultInfo, MetricInfo
from monitor.stage.setup import Setup


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """One idea, run once per step for each of N robots.

    Attributes:
        name: Unique name, a Python identifier.
        state: Dataclass of what is kept between steps; only this stage sees it.
        limits: Dataclass of what is configured; only this stage sees it.
        out: Dataclass of what is written. It inherits from the ``out`` of each stage that it
            reads; those stages must stand earlier.
        update: ``update(state, step, out, limits)`` takes one step of one robot; marked
            ``@compiled``.
        configure: Returns the limits for a :class:`Setup`; None takes their defaults.
    """

    name: str
    state: type
    limits: type
    out: type
    update: Callable[[Any, Any, Any, Any], None]
    configure: Callable[[Setup], Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricStage(Stage):
    """A stage whose outputs are metrics.

    Attributes:
        info: One row per metric that it gives.
    """

    info: tuple[MetricInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FaultStage(Stage):
    """A stage that finds one fault: its first own output is 0 where there is none.

    Attributes:
        info: The row of the table of faults.
        describe: ``describe(evidence, out, setup)`` returns the message and further details
            (``value`` and others by name) of a fault that was found.
    """

    info: FaultInfo
    describe: Callable[[Evidence, Any, Setup], tuple[str, dict[str, Any]]]

    @property
    def column(self) -> str:
        """Name of the output that is 0 where there is no fault."""
        return next(iter(self.out.__annotations__))


def raised(error: BaseException) -> str:
    """Return "raised ..." of an exception, even of one that fails to describe itself.

    >>> raised(ValueError("no"))
    "raised ValueError('no')"
    """
    try:
        return f"raised {error!r}"
    except Exception:  # foreign code may raise anything
        return f"raised a {type(error).__name__} (message unavailable)"


def make_fault(info_code: str, step: int, message: str, field: str, **detail: Any) -> Fault:
    """Return a fault with its step, the field of ``Step`` that shows it, and its details."""
    about = {"step": step, "field": field or None, "value": None, **detail}
    return Fault(code=info_code, message=f"step {step}: {message}", detail=about)
