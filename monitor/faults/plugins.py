"""Faults of other packages: entry-point group ``vlawatch.faults``, or ``module:attribute``."""

from __future__ import annotations

from typing import Any, Final, final

from monitor.faults.base import Detector, StepContext, fault
from monitor.plugins import resolve
from monitor.records import Fault
from monitor.stage import FaultInfo, FaultStage, Setup
from monitor.stage.base import raised

GROUP: Final = "vlawatch.faults"
"""A stage, or a callable from :class:`monitor.stage.Setup` to a detector."""


def named_plugins(names: tuple[str, ...] | None) -> list[tuple[str, Any]]:
    """Return what the configured names stand for.

    Raises:
        ConfigError: No installed package offers such a name.
    """
    return [(name, resolve("fault plugin", name, GROUP, {})) for name in names or ()]


def plugin_stages(setup: Setup) -> list[FaultStage]:
    """Return the configured faults that are stages and run for all robots at once."""
    found = named_plugins(setup.config.faults.plugins)
    return [one for _, one in found if isinstance(one, FaultStage)]


def plugin_faults(names: tuple[str, ...] | None) -> list[FaultInfo]:
    """Return what the configured plugins say of their faults.

    A detector in Python may have a class attribute ``info``, a tuple of
    :class:`monitor.stage.FaultInfo`; without it its faults are alerts.
    """
    infos: list[FaultInfo] = []
    for _, one in named_plugins(names):
        infos += [one.info] if isinstance(one, FaultStage) else getattr(one, "info", ())
    return infos


def build_detectors(setup: Setup, count: int) -> list[list[Detector]]:
    """Return the configured detectors that run robot by robot, ``count`` times."""
    found = named_plugins(setup.config.faults.plugins)
    factories = [(name, one) for name, one in found if not isinstance(one, FaultStage)]
    return [[Guard(name, factory(setup)) for name, factory in factories] for _ in range(count)]


@final
class Guard:
    """A detector whose exceptions are faults: DETECTOR_ERROR."""

    def __init__(self, name: str, inner: Detector) -> None:
        self._name = name
        self._inner = inner

    def reset(self) -> None:
        """Begin an episode."""
        self._inner.reset()

    def check(self, context: StepContext) -> list[Fault]:
        """Return the inner detector's faults, or the one that it failed."""
        try:
            return [_checked(one) for one in self._inner.check(context)]
        except Exception as error:  # foreign code may raise anything
            said = raised(error)
            text = f"fault detector {self._name!r} {said}"
            return [fault("DETECTOR_ERROR", context, text, field=self._name, value=said)]


def _checked(given: Any) -> Fault:
    """Return what a detector gave.

    Raises:
        TypeError: It is not a fault with a code.
    """
    if isinstance(given, Fault) and isinstance(given.code, str):
        return given
    message = f"check() must return Faults with a str as code, it returned a {type(given).__name__}"
    raise TypeError(message)
