"""What has no form in arrays, environment by environment: plugins, ``info_window``, ``extra``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from monitor.config import MetricsConfig
from monitor.faults import Detector, Scene, Setting, plugin_detectors
from monitor.metrics.catalogue import CATALOGUE
from monitor.metrics.information import IDS, Information
from monitor.metrics.plugins import MetricSetting, build_plugins
from monitor.reading.batch import note
from monitor.reading.step import StepReader
from monitor.records import Evidence, FloatArray, Step
from monitor.vector.history import Mask

FIELDS: Final = Step.__struct_fields__
SHARED: Final = frozenset({"action_token_range"})


@final
class Individuals:
    """N times what a single monitor has, as slow as N of them; idle where nothing asks for it."""

    def __init__(self, metrics: MetricsConfig, setting: Setting, n: int) -> None:
        low, high = setting.action_low, setting.action_high
        about = MetricSetting(action_low=low, action_high=high, window=metrics.window)
        plugins = build_plugins(metrics, about, n)
        self._n = n
        self._readers = [StepReader(low, high, each) for each in plugins]
        self._ids = tuple(name for plugin in plugins[0] for name in plugin.ids)
        window = metrics.info_window
        limits = tuple(np.maximum(np.abs(low), np.abs(high))[:3].tolist())
        self._information = [] if window is None else [Information(window, limits) for _ in plugins]
        self._detectors: list[list[Detector]] = (
            [plugin_detectors(setting) for _ in plugins] if setting.config.plugins else []
        )
        self._evidence: list[Evidence] = []
        self._blank = dict.fromkeys((*CATALOGUE, *self._ids))

    def reset(self, which: Mask) -> None:
        """Begin an episode in some environments."""
        for i in np.flatnonzero(which):
            self._readers[i].reset()
            if self._information:
                self._information[i].reset()
            if self._detectors:
                for detector in self._detectors[i]:
                    detector.reset()

    def measure(
        self, step: Step, index: NDArray[np.int64], values: dict[str, FloatArray],
        faults: dict[str, Mask],
    ) -> None:  # fmt: skip
        """Write the metrics of plugins, of ``info_window`` and of ``extra`` into ``values``."""
        asked = self._ids or self._information or self._detectors
        if not asked and step.extra is None:
            return
        self._evidence = [
            self._readers[i].read(alone(step, i, self._n), int(index[i])) for i in range(self._n)
        ]
        seen = dict.fromkeys(name for one in self._evidence for name in one.signals)
        # What the arrays give already is not taken from here.
        names = [name for name in seen if name not in values]
        if self._information:
            names += IDS
        found = {name: np.full(self._n, np.nan) for name in names}
        for i, evidence in enumerate(self._evidence):
            row = dict(evidence.signals)
            if self._information:
                self._information[i].update(evidence, row)
            for name, column in found.items():
                value = row.get(name)
                column[i] = np.nan if value is None else value
            if any(one.code == "METRIC_ERROR" for one in evidence.problems):
                note(faults, "METRIC_ERROR", np.arange(self._n) == i)
        values.update(found)

    def check(
        self, index: NDArray[np.int64], values: Mapping[str, FloatArray], succeeded: Mask,
        faults: dict[str, Mask],
    ) -> None:  # fmt: skip
        """Add the faults that the plugins' detectors see."""
        if not self._detectors:
            return
        rows = {name: column.tolist() for name, column in values.items()}
        for i, evidence in enumerate(self._evidence):
            known = {name: row[i] for name, row in rows.items() if row[i] == row[i]}
            scene = Scene(
                step=int(index[i]), evidence=evidence, metrics={**self._blank, **known},
                succeeded=bool(succeeded[i]),
            )  # fmt: skip
            for one in [fault for each in self._detectors[i] for fault in each.check(scene)]:
                note(faults, one.code, np.arange(self._n) == i)


def alone(step: Step, i: int, n: int) -> Step:
    """Return the ``i``-th of ``n`` environments' own step.

    >>> alone(Step(action=[[1.0], [2.0]], policy_error="boom"), 1, 2)
    Step(action=[2.0], ..., policy_error='boom', ...)
    """
    return Step(**{name: _part(getattr(step, name), i, n, name) for name in FIELDS})


def _part(value: Any, i: int, n: int, name: str) -> Any:
    if value is None or isinstance(value, (str, bool)) or name in SHARED:
        return value
    if isinstance(value, Mapping):
        return {key: _part(one, i, n, "") for key, one in value.items()}
    try:
        return value[i] if len(value) == n else value
    except (TypeError, IndexError, KeyError, ValueError):
        return value  # misshapen; whoever reads it says so
