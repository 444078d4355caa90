"""The same monitor over N environments at once, in arrays."""

from monitor.vector.monitor import VectorDecision, VectorMonitor

__all__ = ["VectorDecision", "VectorMonitor"]
