"""Faults: what no score may hide, one per file, and how each is answered."""

from monitor.faults.base import Detector, StepContext, fault
from monitor.faults.registry import FAMILIES, FAULTS, RESPONSES, check_families, responses

__all__ = [
    "FAMILIES",
    "FAULTS",
    "RESPONSES",
    "Detector",
    "StepContext",
    "check_families",
    "fault",
    "responses",
]
