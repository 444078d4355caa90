"""Faults: what no score may hide. One small detector per family, a response per code."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType

from monitor.config import FaultsConfig, Response
from monitor.errors import ConfigError, unknown_name
from monitor.faults.base import Detector, Scene, Setting, fault
from monitor.faults.guard import Guard

GROUP = "vlawatch.faults"
"""Entry-point group of third-party detectors: a callable from :class:`Setting` to a detector."""

DETECTORS = MappingProxyType(
    {
        "data": "monitor.faults.data:DataFaults",
        "vision_bypass": "monitor.faults.vision:VisionBypass",
        "camera": "monitor.faults.vision:Camera",
        "stall": "monitor.faults.behaviour:Stall",
        "drop": "monitor.faults.behaviour:Drop",
        "gripper": "monitor.faults.behaviour:Gripper",
        "vocabulary": "monitor.faults.policy:OffVocabulary",
        "unnormalisation": "monitor.faults.policy:Unnormalisation",
        "latency": "monitor.faults.policy:Latency",
    }
)

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


def build_detectors(setting: Setting) -> list[Detector]:
    """Return the detectors that the configuration leaves on, shipped ones first.

    Raises:
        ConfigError: a family or plugin of the configuration does not exist.
    """
    config = setting.config
    check_families(config)
    built: list[Detector] = []
    for name, path in DETECTORS.items():
        if name not in config.off:
            module, _, attribute = path.partition(":")
            built.append(getattr(import_module(module), attribute)(setting))
    if config.plugins:
        found = {one.name: one for one in entry_points(group=GROUP)}
        for name in config.plugins:
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
        if name not in DETECTORS:
            raise ConfigError(unknown_name("fault family", name, DETECTORS))


def responses(config: FaultsConfig) -> dict[str, Response]:
    """Return the response by code, the configuration's over the shipped ones."""
    return {**RESPONSES, **config.respond}


__all__ = [
    "DETECTORS",
    "GROUP",
    "RESPONSES",
    "Detector",
    "Scene",
    "Setting",
    "build_detectors",
    "check_families",
    "fault",
    "responses",
]
