"""Every metric: what the files of :mod:`monitor.metrics` and :mod:`monitor.belief` say of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from monitor.stage.base import MetricStage
from monitor.stage.discover import declared, in_order
from monitor.stage.info import MetricInfo

METRIC_STAGES: Final[tuple[MetricStage, ...]] = in_order(
    [*declared("monitor.metrics", "METRIC"), *declared("monitor.belief", "METRIC")]
)
"""Shipped metrics that are computed by stages, each behind those that it reads."""

CATALOGUE: Final[dict[str, MetricInfo]] = {
    info.id: info
    for infos in (*declared("monitor.metrics", "INFOS"), *(one.info for one in METRIC_STAGES))
    for info in infos
}
"""Every metric by id; higher is worse unless its meaning says otherwise."""


def recorded_infos(header: Mapping[str, Any]) -> dict[str, MetricInfo]:
    """Return what is known of the metrics of a recorded run, those of plugins included.

    Args:
        header: Content of ``run.json``; ``plugin_metrics`` holds what plugins said of theirs.
    """
    given = header.get("plugin_metrics") or {}
    return {**CATALOGUE, **{name: msgspec.convert(row, MetricInfo) for name, row in given.items()}}
