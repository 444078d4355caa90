"""Scalars that a policy measures itself, such as the flow signals of π0."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from monitor.catalogue import CATALOGUE
from monitor.reading.arrays import to_scalar, words
from monitor.records import Fault


def read_extra(
    given: Any, index: int, signals: dict[str, float | None], problems: list[Fault]
) -> None:
    """Write a policy's own scalars into ``signals``; a value that is not finite stays unknown.

    Args:
        given: Values by metric id, None where unknown.
        index: Index of the step within its episode.
        signals: Signals of the step; a metric of the monitor itself is never overwritten.
        problems: Faults of the step; gets a METRIC_ERROR for each value that cannot be used.

    >>> signals, problems = {}, []
    >>> read_extra({"PI0-DV": 0.25, "TB-E": 0.0}, 3, signals, problems)
    >>> signals, [fault.message for fault in problems]
    ({'PI0-DV': 0.25}, ["step 3: extra TB-E is the monitor's own metric; choose another id"])
    """
    if not isinstance(given, Mapping):
        text = f"is {type(given).__name__}, expected a mapping by metric id"
        problems.append(_fault(index, text, given))
        return
    for key, value in given.items():
        name = str(key)
        info = CATALOGUE.get(name)
        if info is not None and info.needs != ("extra",):
            text = f"{name} is the monitor's own metric; choose another id"
            problems.append(_fault(index, text, value))
            continue
        signals[name] = None
        if value is None:
            continue
        number = to_scalar(value)
        if number is None or not isfinite(number):
            text = f"{name} is {words(value)[:40]}, expected a finite number"
            problems.append(_fault(index, text, value))
        else:
            signals[name] = number


def _fault(index: int, text: str, value: Any) -> Fault:
    return Fault(
        code="METRIC_ERROR",
        message=f"step {index}: extra {text}",
        detail={"step": index, "field": "extra", "value": words(value)[:40]},
    )
