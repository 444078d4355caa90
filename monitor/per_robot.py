"""Per-robot fallback for what is not vectorized: plugins, ``info_window``, ``extra``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from monitor.faults.base import StepContext
from monitor.metrics.information import IDS
from monitor.parts import Parts
from monitor.reading.batch import Mask, note
from monitor.reading.step import StepReader
from monitor.records import Evidence, FloatArray, Step

FIELDS: Final = Step.__struct_fields__
SHARED: Final = frozenset({"action_token_range"})


@final
class PerRobot:
    """N times what a single monitor has, as slow as N of them; idle where nothing asks for it."""

    def __init__(self, parts: Parts, n: int) -> None:
        setup = parts.setup
        self._parts, self._n = parts, n
        self._readers = [
            StepReader(setup.action_low, setup.action_high, each) for each in parts.plugins
        ]
        self._ids = tuple(name for plugin in parts.plugins[0] for name in plugin.ids)
        self._evidence: list[Evidence] = []
        self._blank = dict.fromkeys(parts.ids)

    def reset(self, which: Mask) -> None:
        """Begin an episode of some robots."""
        for i in np.flatnonzero(which):
            self._readers[i].reset()

    def measure(
        self,
        step: Step,
        index: NDArray[np.int64],
        values: dict[str, FloatArray],
        faults: dict[str, Mask],
    ) -> None:
        """Write the metrics of plugins, of ``info_window`` and of ``extra`` into ``values``."""
        information, detectors = self._parts.information, self._parts.detectors[0]
        if not (self._ids or information or detectors) and step.extra is None:
            return
        self._evidence = [
            self._readers[i].read(alone(step, i, self._n), int(index[i])) for i in range(self._n)
        ]
        seen = dict.fromkeys(name for one in self._evidence for name in one.signals)
        # What the arrays give already is not taken from here.
        names = [name for name in seen if name not in values]
        if information:
            names += IDS
        found = {name: np.full(self._n, np.nan) for name in names}
        for i, evidence in enumerate(self._evidence):
            row = dict(evidence.signals)
            if information:
                information[i].update(evidence, row)
            for name, column in found.items():
                value = row.get(name)
                column[i] = np.nan if value is None else value
            if any(one.code == "METRIC_ERROR" for one in evidence.problems):
                note(faults, "METRIC_ERROR", np.arange(self._n) == i)
        values.update(found)

    def check(
        self,
        index: NDArray[np.int64],
        values: Mapping[str, FloatArray],
        succeeded: FloatArray,
        faults: dict[str, Mask],
    ) -> None:
        """Add the faults that the plugins' detectors see."""
        if not self._parts.detectors[0]:
            return
        rows = {name: column.tolist() for name, column in values.items()}
        for i, evidence in enumerate(self._evidence):
            known = {name: row[i] for name, row in rows.items() if row[i] == row[i]}
            context = StepContext(
                step=int(index[i]),
                evidence=evidence,
                metrics={**self._blank, **known},
                succeeded=bool(succeeded[i]),
            )
            for detector in self._parts.detectors[i]:
                for one in detector.check(context):
                    note(faults, one.code, np.arange(self._n) == i)


def alone(step: Step, i: int, n: int) -> Step:
    """Return the ``i``-th of ``n`` robots' own step.

    >>> one = alone(Step(action=[[1.0], [2.0]], policy_error="boom"), 1, 2)
    >>> one.action, one.policy_error
    ([2.0], 'boom')
    """
    return Step(**{name: _part(getattr(step, name), i, n, name) for name in FIELDS})


def _part(value: Any, i: int, n: int, name: str) -> Any:
    if value is None or isinstance(value, (str, bool)) or name in SHARED:
        return value
    if isinstance(value, Mapping):
        return {key: _part(one, i, n, "") for key, one in value.items()}
    try:
        return value[i] if len(value) == n else value
    except Exception:
        return value  # misshapen; its reader says so
