"""Faults: what no score may hide, and how each is answered.

The shipped families are found in :mod:`monitor.core.judge` and, where a step's own data show
them, in :mod:`monitor.faults.data`; another package's detectors join as plugins.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Final

from monitor.config import FaultsConfig, Response
from monitor.errors import ConfigError, unknown_name
from monitor.faults.base import Detector, Scene, Setting, fault
from monitor.faults.guard import Guard

GROUP = "vlawatch.faults"
"""Entry-point group of third-party detectors: a callable from :class:`Setting` to a detector."""

FAMILIES: Final = (
    "data",
    "vision_bypass",
    "camera",
    "stall",
    "drop",
    "gripper",
    "vocabulary",
    "unnormalisation",
    "latency",
)
"""Shipped families, each of which ``faults.off`` may leave out."""

RESPONSES: MappingProxyType[str, Response] = MappingProxyType(
    {
        "NONFINITE_ACTION": "halt",
        "ACTION_SHAPE": "halt",
        "ACTION_MISSING": "halt",
        "POLICY_ERROR": "halt",
        "ENV_ERROR": "halt",
        "UNNORM_MISMATCH": "halt",
        "STALE_ACTION": "recover",
        "MALFORMED_TOKENS": "recover",
        "NONFINITE_LOGITS": "recover",
        "VISION_BYPASS": "recover",
        "CAMERA_BLACK": "recover",
        "CAMERA_FROZEN": "recover",
        "STALL": "recover",
        "ACTION_RANGE": "alert",
        "LOGITS_SHAPE": "alert",
        "TOKEN_IDS": "alert",
        "NONFINITE_POSE": "alert",
        "POSE_SHAPE": "alert",
        "POSE_RANGE": "alert",
        "NONFINITE_DISTANCE": "alert",
        "DISTANCE_SHAPE": "alert",
        "DISTANCE_RANGE": "alert",
        "NONFINITE_GRIPPER": "alert",
        "GRIPPER_SHAPE": "alert",
        "NONFINITE_LATENCY_VALUE": "alert",
        "LATENCY_VALUE_SHAPE": "alert",
        "LATENCY_VALUE_RANGE": "alert",
        "SUCCESS_SHAPE": "alert",
        "NONFINITE_SAMPLES": "alert",
        "SAMPLES_SHAPE": "alert",
        "NONFINITE_CHUNK": "alert",
        "CHUNK_SHAPE": "alert",
        "EV_UNINFORMATIVE": "ignore",
        "METRIC_ERROR": "alert",
        "DETECTOR_ERROR": "alert",
        "CAMERA_FORMAT": "alert",
        "OFF_VOCAB_TOKEN": "alert",
        "GRIPPER_NO_RESPONSE": "alert",
        "LATENCY": "alert",
        "DROP": "alert",
    }
)
"""Shipped responses by code; a code that is not here is an alert."""


def plugin_detectors(setting: Setting) -> list[Detector]:
    """Return the detectors of other packages that the configuration names.

    Raises:
        ConfigError: one of them is not installed.
    """
    if not setting.config.plugins:
        return []
    found = {one.name: one for one in entry_points(group=GROUP)}
    built: list[Detector] = []
    for name in setting.config.plugins:
        if name not in found:
            raise ConfigError(unknown_name("fault plugin", name, found))
        built.append(Guard(name, found[name].load()(setting)))
    return built


def check_families(config: FaultsConfig) -> None:
    """Refuse families to leave out that there are not.

    Raises:
        ConfigError: naming the nearest one.
    """
    for name in config.off:
        if name not in FAMILIES:
            raise ConfigError(unknown_name("fault family", name, FAMILIES))


def responses(config: FaultsConfig) -> dict[str, Response]:
    """Return the response by code, the configuration's over the shipped ones."""
    return {**RESPONSES, **config.respond}


__all__ = [
    "FAMILIES",
    "GROUP",
    "RESPONSES",
    "Detector",
    "Scene",
    "Setting",
    "check_families",
    "fault",
    "plugin_detectors",
    "responses",
]
