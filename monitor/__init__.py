"""Runtime monitor for vision-language-action robot policies."""

from monitor.calibration import Calibration, TailTable
from monitor.config import MonitorConfig, load_config, parse_config
from monitor.errors import (
    CalibrationError,
    ConfigError,
    DimensionError,
    MissingExtraError,
    MonitorError,
)
from monitor.pipeline import Monitor
from monitor.records import Alert, Belief, Decision, Evidence, Fault, Mode, Step

__all__ = [
    "Alert",
    "Belief",
    "Calibration",
    "CalibrationError",
    "ConfigError",
    "Decision",
    "DimensionError",
    "Evidence",
    "Fault",
    "MissingExtraError",
    "Mode",
    "Monitor",
    "MonitorConfig",
    "MonitorError",
    "Step",
    "TailTable",
    "load_config",
    "parse_config",
]
