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
    """Return the content of a ``run.json`` with its monitor configuration in today's form.

    A header of today comes back unchanged; the argument is not changed.

    >>> old = {"monitor": {"recovery": {"steps": 6, "gripper_open": -1.0}}}
    >>> upgrade_header(old)["monitor"]
    {'recovery': {'steps': 6}, 'robot': {'gripper': {'open': -1.0}}}
    """
    monitor = header.get("monitor")
    if not isinstance(monitor, dict):
        return header
    recovery = monitor.get("recovery")
    if not isinstance(recovery, dict) or not recovery.keys() & _GRIPPER.keys():
        return header
    kept = {key: value for key, value in recovery.items() if key not in _GRIPPER}
    gripper = {_GRIPPER[key]: value for key, value in recovery.items() if key in _GRIPPER}
    return {**header, "monitor": {**monitor, "recovery": kept, "robot": {"gripper": gripper}}}
