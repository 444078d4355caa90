"""Metrics of other packages, by entry-point group ``vlawatch.metrics``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from math import isfinite
from typing import Any, Final, Protocol

from monitor.config import MetricsConfig
from monitor.errors import ConfigError, unknown_name
from monitor.metrics.probe_file import ProbeFile
from monitor.metrics.safe import SafeMetric
from monitor.records import Fault, FloatArray, Step

GROUP: Final = "vlawatch.metrics"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricSetting:
    """What a plugin is built from: action space ``(D,)`` and window."""

    action_low: FloatArray
    action_high: FloatArray
    window: int


class MetricPlugin(Protocol):
    """A metric of the raw step; its values are kept in the evidence, so that they replay."""

    ids: tuple[str, ...]
    """Keys of the values it gives."""

    def measure(self, step: Step) -> Mapping[str, float | None]:
        """Return values by id; None where unknown."""

    def reset(self) -> None:
        """Begin an episode; identical to a new instance."""


def load_plugins(names: tuple[str, ...] | None, setting: MetricSetting) -> list[MetricPlugin]:
    """Return the plugins of the given entry-point names.

    Raises:
        ConfigError: no installed package offers such a name.
    """
    if not names:
        return []
    found = {one.name: one for one in entry_points(group=GROUP)}
    built: list[MetricPlugin] = []
    for name in names:
        if name not in found:
            raise ConfigError(unknown_name("metric plugin", name, found))
        built.append(found[name].load()(setting))
    return built


def build_plugins(
    metrics: MetricsConfig, setting: MetricSetting, count: int
) -> list[list[MetricPlugin]]:
    """Return what runs beside the shipped metrics, ``count`` times; a probe is read once.

    Raises:
        ConfigError: a name that no package offers, or a probe that cannot be read.
    """
    probe = None if metrics.safe is None else ProbeFile.load(metrics.safe)
    own: list[list[MetricPlugin]] = [
        [] if probe is None else [SafeMetric(probe)] for _ in range(count)
    ]
    return [[*each, *load_plugins(metrics.plugins, setting)] for each in own]


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
        problems.append(
            Fault(
                code="METRIC_ERROR",
                message=f"step {index}: metric {'/'.join(plugin.ids)} raised {error!r}",
                detail={
                    "step": index,
                    "field": plugin.ids[0] if plugin.ids else "",
                    "value": repr(error),
                },
            )
        )
