"""Metrics and faults of N robots: the shipped stages, and those of plugins, in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, make_dataclass
from functools import cache
from typing import Any, Final, final

from monitor.catalogue import METRIC_STAGES
from monitor.engine.passes import Call, Pass
from monitor.errors import ConfigError
from monitor.faults.registry import FAULT_STAGES
from monitor.stage import FaultStage, MetricStage, Setup, Stage, StepRow, part
from monitor.stage.layout import fresh, redeclared

__all__ = ["Engine", "join_outputs"]


@final
class Outputs:
    """A row of outputs, read by name like an object of the stages' ``Out``."""

    __slots__ = ("_columns", "_row")

    def __init__(self, row: Sequence[float], columns: Mapping[str, slice | int]) -> None:
        self._row, self._columns = row, columns

    def __getattr__(self, name: str) -> Any:
        if name not in self._columns:
            raise AttributeError(name)
        return self._row[self._columns[name]]


@final
class Engine:
    """The stages of a setup over N robots.

    Attributes:
        ids: Metrics that it gives, in the order of their columns.
        faults: Stages that find faults, in the order in which faults are reported.
        run: The pass: fill ``run.rows``, call ``run.update``.
    """

    def __init__(
        self,
        setup: Setup,
        n: int,
        metrics: Sequence[MetricStage] = (),
        faults: Sequence[FaultStage] = (),
    ) -> None:
        """Build the shipped stages and further ones.

        Raises:
            ConfigError: two stages have one name, write one field, or stand in a wrong order.
        """
        self._args = (setup, n, tuple(metrics), tuple(faults))
        off = setup.config.faults.off
        self.faults: Final = (*FAULT_STAGES, *faults)
        measuring = (*METRIC_STAGES, *metrics)
        stages: tuple[Stage, ...] = (*measuring, *self.faults)
        declared = _declare(stages)
        limits = declared[1](**{one.name: limits_of(one, setup) for one in stages})
        for one in self.faults:
            if one.info.family in off and hasattr(getattr(limits, one.name), "enabled"):
                getattr(limits, one.name).enabled = False
        calls = [
            Call(
                name=one.name,
                function=one.update,
                part=True,
                switchable=hasattr(one.limits, "enabled"),
            )
            for one in stages
        ]
        state, _, out = declared
        self.run: Final = Pass(
            calls, state=state, row=StepRow, out=out, limits=limits, sizes=setup.sizes, n=n
        )
        columns = self.run.columns
        places = {
            info.id: _place(columns, info.column, info.index)
            for one in measuring
            for info in one.info
        }
        self.ids: Final = tuple(places)
        self.metric_columns: Final = tuple(places.values())
        self.fault_columns: Final = tuple(_place(columns, one.column, None) for one in self.faults)
        self.first_fault: Final = min(self.fault_columns)

    def __getstate__(self) -> tuple[Any, ...]:
        # The joined declarations are made at run time, so they are made again where it is loaded.
        return (self._args, self.run.dump())

    def __setstate__(self, kept: tuple[Any, ...]) -> None:
        args, states = kept
        self.__init__(*args)
        self.run.load(states)

    def column(self, name: str) -> int:
        """Return where an output stands in its row."""
        return _place(self.run.columns, name, None)

    def outputs(self, row: Sequence[float]) -> Outputs:
        """Return a row of outputs by name."""
        return Outputs(row, self.run.columns)


def _place(columns: Any, name: str, index: int | None) -> int:
    span = columns[name]
    return int(span.start + index) if isinstance(span, slice) else int(span)


def limits_of(stage: Stage, setup: Setup) -> Any:
    """Return the limits of a stage in a setup."""
    if stage.configure is None:
        return fresh(stage.limits, **setup.sizes)
    return stage.configure(setup)


@cache
def _declare(stages: tuple[Stage, ...]) -> tuple[type, type, type]:
    """Return one declaration each of all stages' states, limits and outputs."""
    names = [one.name for one in stages]
    for name in names:
        if names.count(name) > 1 or not name.isidentifier():
            message = f"stage name {name!r} must be an identifier that no other stage has"
            raise ConfigError(message)
    states, limits = (
        make_dataclass(
            what.title(), [(one.name, Any, part(getattr(one, what))) for one in stages], slots=True
        )
        for what in ("state", "limits")
    )
    return states, limits, join_outputs(stages)


def join_outputs(stages: Sequence[Stage]) -> type:
    """Return one class with the outputs of all stages, each written by one of them.

    Raises:
        ConfigError: two stages write the same field, or one reads what no stage before it writes.
    """
    known: dict[str, Any] = {}
    for stage in stages:
        own = set(stage.out.__annotations__)
        for one in fields(stage.out):
            if one.name in own and one.name in known:
                message = f"stage {stage.name!r} writes {one.name!r}, which another stage writes"
                raise ConfigError(message)
            if one.name not in own and one.name not in known:
                message = f"stage {stage.name!r} reads {one.name!r} before a stage writes it"
                raise ConfigError(message)
            known[one.name] = redeclared(one)
    return make_dataclass("Out", [(name, Any, one) for name, one in known.items()], slots=True)
