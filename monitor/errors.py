"""Errors that misuse raises; bad data never raises, it becomes a :class:`monitor.records.Fault`."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class MonitorError(Exception):
    """Base of every error of this project."""


class ConfigError(MonitorError, ValueError):
    """A configuration names something that does not exist or cannot be."""


class DimensionError(MonitorError, ValueError):
    """An array given at construction has the wrong shape."""


class CalibrationError(MonitorError, ValueError):
    """A calibration cannot be made, read or used here."""


class StartRefusedError(MonitorError, RuntimeError):
    """A policy may not move this robot: what does not fit, and what to do."""


class EnvStartError(MonitorError, RuntimeError):
    """A simulator did not start on this machine; the text has its own words."""


class MissingExtraError(MonitorError, ImportError):
    """An optional dependency is not installed; the text names the pip command."""


class MisuseError(MonitorError, TypeError):
    """Programming error: an argument of the wrong type."""


def misuse(given: object) -> str:
    """Return the error text for something that is not a Step.

    >>> misuse(None)
    'update() takes a Step, given None; wrap what the policy and the robot say: Step(action=...)'
    """
    shown = "None" if given is None else f"a {type(given).__name__}"
    return (
        f"update() takes a Step, given {shown}; wrap what the policy and the robot say: "
        "Step(action=...)"
    )


def unknown_name(kind: str, given: object, allowed: Iterable[str]) -> str:
    """Text for a name that is not known: what was given, the nearest match, what is allowed.

    >>> unknown_name("metric", "TB-F", ["TB-E", "TI"])
    "unknown metric 'TB-F'; did you mean 'TB-E'? Allowed: TB-E, TI"
    """
    names = sorted(allowed)
    near = get_close_matches(str(given), names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown {kind} {given!r}; {hint}Allowed: {', '.join(names)}"
