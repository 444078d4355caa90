"""Keeps a third-party detector's own failure from becoming the monitor's."""

from __future__ import annotations

from typing import final

from monitor.faults.base import Detector, Scene, fault
from monitor.records import Fault


@final
class Guard:
    """A detector whose exceptions are faults: DETECTOR_ERROR."""

    def __init__(self, name: str, inner: Detector) -> None:
        self._name = name
        self._inner = inner

    def reset(self) -> None:
        """Begin an episode."""
        self._inner.reset()

    def check(self, scene: Scene) -> list[Fault]:
        """Return the inner detector's faults, or the one that it failed."""
        try:
            return list(self._inner.check(scene))
        except Exception as error:  # foreign code may raise anything
            text = f"fault detector {self._name!r} raised {error!r}"
            return [fault("DETECTOR_ERROR", scene, text, field=self._name, value=repr(error))]
