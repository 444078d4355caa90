"""Every metric: what the files of :mod:`monitor.metrics` and :mod:`monitor.belief` say of it."""

from __future__ import annotations

from typing import Final

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


def of_motion(name: str) -> bool:
    """Tell whether a metric measures the robot's own motion, so that a retreat makes it void.

    >>> of_motion("A-AI"), of_motion("TB-E")
    (True, False)
    """
    return name in CATALOGUE and CATALOGUE[name].of_motion
