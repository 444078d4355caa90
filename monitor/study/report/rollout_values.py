"""One value per metric and rollout, and how it differs between failures and successes.

Values: the mean over the steps, the largest, the largest mean over 8 steps in a row ("Shifting
Uncertainty to Critical Moments" 2026), and for TI the root mean square (Valle et al. 2025).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from monitor.study.runs import Run
from monitor.study.statistics.association import GroupDifference, difference, holm
from monitor.study.statistics.detection import peak_of_means, prefix_peak

__all__ = ["VALUES", "MetricDifference", "metric_differences", "root_mean_square"]

Series = Sequence[float | None]


def mean(values: Series) -> float | None:
    """Return the mean of what is known; None where nothing is.

    >>> mean([None, 1.0, 3.0])
    2.0
    """
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def root_mean_square(values: Series) -> float | None:
    """Return the root mean square of what is known; None where nothing is.

    >>> root_mean_square([None, 3.0, -3.0])
    3.0
    """
    square = mean([None if value is None else value * value for value in values])
    return None if square is None else square**0.5


VALUES: Final[Mapping[str, Callable[[Series], float | None]]] = MappingProxyType(
    {"mean": mean, "max": prefix_peak, "peak8": peak_of_means, "rms": root_mean_square}
)
"""Ways to make one number of a rollout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDifference:
    """A metric's values in failed against solved rollouts.

    Attributes:
        metric: id.
        of: failed against solved by name of :data:`VALUES`; None where one of the two has none.
        p_holm: p-value of the mean, corrected for the number of metrics.
    """

    metric: str
    of: Mapping[str, GroupDifference | None]
    p_holm: float | None


def metric_differences(run: Run, metrics: Sequence[str]) -> list[MetricDifference]:
    """Compare failed and solved episodes by each metric.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    found = []
    for metric in metrics:
        series = {kind: [one.series(metric) for one in run.of(kind)] for kind in _KINDS}
        found.append(
            {
                name: _compared(series, value)
                for name, value in VALUES.items()
                if _fits(name, metric)
            }
        )
    tested = [i for i, of in enumerate(found) if of["mean"] is not None]
    p_values = [one.p_value for of in found if (one := of["mean"]) is not None]
    corrected = dict(zip(tested, holm(p_values), strict=True))
    return [
        MetricDifference(metric=metric, of=of, p_holm=corrected.get(i))
        for i, (metric, of) in enumerate(zip(metrics, found, strict=True))
    ]


_KINDS: Final = ("success", "failure")


def _fits(value: str, metric: str) -> bool:
    return value != "rms" or metric == "TI"


def _compared(
    series: Mapping[str, Sequence[Series]], value: Callable[[Series], float | None]
) -> GroupDifference | None:
    solved, failed = (
        [number for one in series[kind] if (number := value(one)) is not None] for kind in _KINDS
    )
    return difference(solved, failed)
