"""From scores, faults and rules to a mode, and from a mode to the action that may be sent."""

from monitor.control.controller import MODES, ControllerLimits, Demand
from monitor.control.recovery import Recovery, RecoveryContext

__all__ = ["MODES", "ControllerLimits", "Demand", "Recovery", "RecoveryContext"]
