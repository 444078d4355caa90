"""The same monitor over N environments at once, in arrays."""

from monitor.vector.decision import VectorDecision
from monitor.vector.monitor import VectorMonitor

__all__ = ["VectorDecision", "VectorMonitor"]
