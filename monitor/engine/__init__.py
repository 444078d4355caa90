"""Runs stages over N robots: one compiled pass where numba is there, plain Python otherwise."""

from monitor.engine.engine import Engine
from monitor.engine.passes import Call, Pass

__all__ = ["Call", "Engine", "Pass"]
