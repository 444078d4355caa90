"""Configuration of the monitor: its sections hold the defaults, a YAML file overrides them."""

from monitor.config.loading import config_folder, load_config, parse_config
from monitor.config.sections import (
    DEFAULT_SIGNALS,
    BeliefConfig,
    ControllerConfig,
    FaultsConfig,
    GripperConfig,
    MetricsConfig,
    MonitorConfig,
    RecoveryConfig,
    Response,
    RobotConfig,
    Rule,
    RuleTerm,
    ScoreConfig,
)

__all__ = [
    "DEFAULT_SIGNALS",
    "BeliefConfig",
    "ControllerConfig",
    "FaultsConfig",
    "GripperConfig",
    "MetricsConfig",
    "MonitorConfig",
    "RecoveryConfig",
    "Response",
    "RobotConfig",
    "Rule",
    "RuleTerm",
    "ScoreConfig",
    "config_folder",
    "load_config",
    "parse_config",
]
