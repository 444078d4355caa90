"""Runtime monitor for vision-language-action robot policies.

The public names are imported when they are first used, so that ``import monitor.errors``, all that
an environment needs, loads neither numpy nor pydantic.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from monitor.adapt import adapt_config
    from monitor.calibration import Calibration, TailTable
    from monitor.capture import MonitoredModel, monitored
    from monitor.config import MonitorConfig, load_config, parse_config
    from monitor.errors import (
        CalibrationError,
        ConfigError,
        DimensionError,
        EnvStartError,
        MissingExtraError,
        MisuseError,
        MonitorError,
        StartRefusedError,
    )
    from monitor.gym import MonitoredEnv
    from monitor.pipeline import Monitor
    from monitor.records import Alert, Belief, Decision, Evidence, Fault, Mode, Step
    from monitor.vector import VectorDecision, VectorMonitor

    __version__: str

__all__ = [
    "Alert",
    "Belief",
    "Calibration",
    "CalibrationError",
    "ConfigError",
    "Decision",
    "DimensionError",
    "EnvStartError",
    "Evidence",
    "Fault",
    "MissingExtraError",
    "MisuseError",
    "Mode",
    "Monitor",
    "MonitorConfig",
    "MonitorError",
    "MonitoredEnv",
    "MonitoredModel",
    "StartRefusedError",
    "Step",
    "TailTable",
    "VectorDecision",
    "VectorMonitor",
    "__version__",
    "adapt_config",
    "load_config",
    "monitored",
    "parse_config",
]

_NAMES: Final = {
    "adapt": ("adapt_config",),
    "calibration": ("Calibration", "TailTable"),
    "capture": ("MonitoredModel", "monitored"),
    "config": ("MonitorConfig", "load_config", "parse_config"),
    "errors": (
        "CalibrationError",
        "ConfigError",
        "DimensionError",
        "EnvStartError",
        "MissingExtraError",
        "MisuseError",
        "MonitorError",
        "StartRefusedError",
    ),
    "gym": ("MonitoredEnv",),
    "pipeline": ("Monitor",),
    "records": ("Alert", "Belief", "Decision", "Evidence", "Fault", "Mode", "Step"),
    "vector": ("VectorDecision", "VectorMonitor"),
}
_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names}

if not TYPE_CHECKING:  # a type checker would take any name for a public one

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            value = version("vlawatch")
        elif name in _MODULES:
            value = getattr(importlib.import_module(f"monitor.{_MODULES[name]}"), name)
        else:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
