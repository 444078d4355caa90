"""What earlier versions recorded, in today's form: metric ids, headers and steps of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator

__all__ = ["RENAMED_METRICS", "MetricId", "current_id", "upgrade_header", "upgrade_step"]

RENAMED_METRICS: Final[Mapping[str, str]] = {"PROG": "NO-PROG"}
"""Metric ids of earlier versions and today's. ``PROG`` differed from ``prog`` in case alone, and
databases that ignore case returned one for the other."""
_PEAK: Final = "_peak"


def current_id(name: str) -> str:
    """Return today's id of a metric, or of its peak, that an earlier version wrote.

    >>> current_id("PROG"), current_id("PROG_peak"), current_id("TI")
    ('NO-PROG', 'NO-PROG_peak', 'TI')
    """
    bare = name.removesuffix(_PEAK)
    return name.replace(bare, RENAMED_METRICS[bare], 1) if bare in RENAMED_METRICS else name


MetricId = Annotated[str, AfterValidator(current_id)]
"""Id of a metric in a configuration or calibration; ids of earlier versions are accepted."""

_GRIPPER: Final = {
    "gripper_index": "index",
    "gripper_open": "open",
    "gripper_close": "close",
    "gripper_relative": "relative",
    "held_opening": "held_opening",
}
"""Keys that were in section ``recovery`` and are now in ``robot.gripper``."""


def upgrade_step(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line of ``steps.jsonl`` with today's metric ids, in the order of the line.

    >>> upgrade_step({"step": 3, "metrics": {"PROG": 0.5, "OT": None}})
    {'step': 3, 'metrics': {'NO-PROG': 0.5, 'OT': None}}
    """
    for key in ("metrics", "surprise"):
        values = line.get(key)
        if isinstance(values, dict) and not _OLD_IDS.isdisjoint(values):
            line = {**line, key: {current_id(name): value for name, value in values.items()}}
    return line


_OLD_IDS: Final = frozenset(name + end for name in RENAMED_METRICS for end in ("", _PEAK))


def upgrade_header(header: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a ``run.json`` in today's form; the argument is not changed.

    The gripper's keys move to section ``robot``. The thresholds in force are written out: until
    they were, a calibration's always won over the configuration's.

    >>> old = {"monitor": {"recovery": {"steps": 6, "gripper_open": -1.0}}}
    >>> upgrade_header(old)["monitor"]
    {'recovery': {'steps': 6}, 'robot': {'gripper': {'open': -1.0}}}
    """
    monitor = header.get("monitor")
    if not isinstance(monitor, dict):
        return header
    return _with_thresholds({**header, "monitor": _with_robot(monitor)})


def _with_robot(monitor: dict[str, Any]) -> dict[str, Any]:
    recovery = monitor.get("recovery")
    if not isinstance(recovery, dict) or not recovery.keys() & _GRIPPER.keys():
        return monitor
    kept = {key: value for key, value in recovery.items() if key not in _GRIPPER}
    gripper = {_GRIPPER[key]: value for key, value in recovery.items() if key in _GRIPPER}
    return {**monitor, "recovery": kept, "robot": {"gripper": gripper}}


def _with_thresholds(header: dict[str, Any]) -> dict[str, Any]:
    values, source = header["monitor"].get("controller"), "default"
    if header.get("calibration") is not None:
        values, source = header["calibration"], "calibration"
    if "thresholds" in header or not isinstance(values, dict):
        return header
    chosen = {name: values[name] for name in ("tau_recover", "tau_halt") if name in values}
    return {**header, "thresholds": chosen, "thresholds_from": dict.fromkeys(chosen, source)}
