"""Recoveries by name: shipped, entry-point group ``vlawatch.recoveries``, or ``module:Class``."""

from __future__ import annotations

from typing import Final

from monitor.control.recovery import Recovery
from monitor.plugins import resolve
from monitor.stage import Setup

GROUP: Final = "vlawatch.recoveries"
RETREAT: Final = "retreat"
"""The recovery that :mod:`monitor.control.control` computes for all robots at once."""
RECOVERIES: Final = {"hold": "monitor.control.hold:Hold"}
"""Further shipped recoveries by name."""


def build_recoveries(setup: Setup, n: int) -> list[Recovery]:
    """Return the configured recovery of each robot, empty for the shipped retreat.

    Raises:
        ConfigError: No package offers a recovery of that name.
    """
    name = setup.config.recovery.behavior
    if name == RETREAT:
        return []
    factory = resolve("recovery", name, GROUP, {RETREAT: "", **RECOVERIES})
    return [factory(setup) for _ in range(n)]
