"""Metrics of other packages: entry-point group ``vlawatch.metrics``, or ``module:attribute``."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, Protocol

from monitor.metrics.probe_file import ProbeFile
from monitor.metrics.safe import SafeMetric
from monitor.plugins import resolve
from monitor.records import Fault, Step
from monitor.stage import MetricInfo, MetricStage, Setup
from monitor.stage.base import make_fault, raised

GROUP: Final = "vlawatch.metrics"


class MetricPlugin(Protocol):
    """A metric of the raw step; its values are kept in the evidence, so that they replay.

    It is built as ``MetricPlugin(setup)``, once per robot. It may have an attribute ``info``, a
    tuple of :class:`monitor.stage.MetricInfo`, to appear in tables and reports.
    """

    ids: tuple[str, ...]
    """Keys of the values it gives."""

    def measure(self, step: Step) -> Mapping[str, float | None]:
        """Return values by id; None where unknown."""

    def reset(self) -> None:
        """Begin an episode; identical to a new instance."""


def named_plugins(names: tuple[str, ...] | None) -> list[Any]:
    """Return what the configured names stand for: stages, and factories of metrics.

    Raises:
        ConfigError: No installed package offers such a name.
    """
    return [resolve("metric plugin", name, GROUP, {}) for name in names or ()]


def plugin_stages(setup: Setup) -> list[MetricStage]:
    """Return the configured metrics that are stages and run for all robots at once."""
    found = named_plugins(setup.config.metrics.plugins)
    return [one for one in found if isinstance(one, MetricStage)]


def build_plugins(setup: Setup, count: int) -> list[list[MetricPlugin]]:
    """Return what runs robot by robot in addition to the stages, ``count`` times.

    Raises:
        ConfigError: A name that no package offers, or a probe that cannot be read.
    """
    metrics = setup.config.metrics
    probe = None if metrics.safe is None else ProbeFile.load(metrics.safe)
    factories = [one for one in named_plugins(metrics.plugins) if not isinstance(one, MetricStage)]
    built: list[list[MetricPlugin]] = []
    for _ in range(count):
        own: list[MetricPlugin] = [] if probe is None else [SafeMetric(probe)]
        built.append([*own, *(factory(setup) for factory in factories)])
    return built


def plugin_infos(plugin: MetricPlugin) -> tuple[MetricInfo, ...]:
    """Return what a plugin says of its metrics, or as much as its ids say."""
    given = getattr(plugin, "info", ())
    known = {info.id for info in given}
    rest = (
        MetricInfo(
            id=name,
            meaning=f"given by {type(plugin).__module__}",
            low=None,
            high=None,
            needs=(),
            source=type(plugin).__module__,
        )
        for name in plugin.ids
        if name not in known
    )
    return (*given, *rest)


def class_infos(plugin: Any) -> tuple[MetricInfo, ...]:
    """Return what a metric that is not built yet says of its metrics: a stage, or a class."""
    found: tuple[MetricInfo, ...] = getattr(plugin, "info", ())
    return found


def measure(
    plugin: MetricPlugin,
    step: Step,
    index: int,
    signals: dict[str, float | None],
    problems: list[Fault],
) -> None:
    """Let ``plugin`` look at the step; whatever it raises becomes a fault."""
    signals.update(dict.fromkeys(plugin.ids))
    try:
        given: Any = dict(plugin.measure(step))
        for name in plugin.ids:
            value = given.get(name)
            if value is not None and isfinite(value):
                signals[name] = float(value)
    except Exception as error:  # foreign code: its failure must not be the monitor's
        said = raised(error)
        text = f"metric {'/'.join(plugin.ids)} {said}"
        field = plugin.ids[0] if plugin.ids else ""
        problems.append(make_fault("METRIC_ERROR", index, text, field, value=said))
