"""Headers of runs that earlier versions recorded, brought to today's form."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["upgrade_header"]

_GRIPPER: Final = {
    "gripper_index": "index",
    "gripper_open": "open",
    "gripper_close": "close",
    "gripper_relative": "relative",
    "held_opening": "held_opening",
}
"""Keys that were in section ``recovery`` and are now in ``robot.gripper``."""


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
