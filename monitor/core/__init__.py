"""Metrics, belief, faults and score of a step: in plain Python, and the same compiled."""

from monitor.core.base import Core, Judged
from monitor.core.build import build_core

__all__ = ["Core", "Judged", "build_core"]
