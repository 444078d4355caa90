"""Which thresholds are in force: the configuration's, a calibration's or the shipped ones."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal

from monitor.calibration import Calibration
from monitor.config import ControllerConfig, MonitorConfig
from monitor.errors import ConfigError

__all__ = ["THRESHOLDS", "as_recorded", "choose_thresholds", "threshold_header"]

log = logging.getLogger(__name__)

Source = Literal["configuration", "calibration", "default"]

THRESHOLDS: Final = ("tau_recover", "tau_halt")
"""Keys of section ``controller`` that a calibration sets where the configuration does not."""


def choose_thresholds(
    config: ControllerConfig, tau_recover: float | None, tau_halt: float | None
) -> dict[str, tuple[float, Source]]:
    """Return the value and the source of each threshold.

    A threshold that the configuration gives wins over a calibration's, with a warning where the
    two differ; the calibration's wins over the default.

    Args:
        config: section of the configuration; the keys that were given in it count as explicit.
        tau_recover: threshold of the calibration, None without one.
        tau_halt: threshold of the calibration, None without one.

    Raises:
        ConfigError: one is of the configuration, one of the calibration, and they are not in order.

    >>> choose_thresholds(ControllerConfig(tau_recover=0.5), 0.5, 0.7)
    {'tau_recover': (0.5, 'configuration'), 'tau_halt': (0.7, 'calibration')}
    """
    fitted = {"tau_recover": tau_recover, "tau_halt": tau_halt}
    chosen = {name: _choose(name, config, fitted[name]) for name in THRESHOLDS}
    (low, low_source), (high, high_source) = chosen.values()
    if low > high and low_source != high_source:
        message = (
            f"controller.tau_recover {low:g} ({low_source}) must not exceed controller.tau_halt "
            f"{high:g} ({high_source}); give both in the configuration, or neither"
        )
        raise ConfigError(message)
    return chosen


def _choose(name: str, config: ControllerConfig, fitted: float | None) -> tuple[float, Source]:
    value: float = getattr(config, name)
    if name in config.model_fields_set:
        if fitted is not None and fitted != value:
            _warn_once(name, value, fitted)
        return value, "configuration"
    return (value, "default") if fitted is None else (fitted, "calibration")


@cache
def _warn_once(name: str, value: float, fitted: float) -> None:
    log.warning(
        "controller.%s is %g in the configuration and %g in the calibration; using %g",
        name,
        value,
        fitted,
        value,
    )


def threshold_header(
    config: ControllerConfig, calibration: Calibration | None
) -> dict[str, dict[str, Any]]:
    """Return what ``run.json`` says of the thresholds in force and where they come from."""
    fitted = (
        (None, None) if calibration is None else (calibration.tau_recover, calibration.tau_halt)
    )
    chosen = choose_thresholds(config, *fitted)
    return {
        "thresholds": {name: value for name, (value, _) in chosen.items()},
        "thresholds_from": {name: source for name, (_, source) in chosen.items()},
    }


def as_recorded(config: MonitorConfig, sources: Mapping[str, str]) -> MonitorConfig:
    """Return a configuration read from ``run.json`` with the explicit thresholds of that run.

    A recorded configuration names every key, so that every threshold in it looks explicit; here
    only those stay so that were.

    Args:
        config: as read.
        sources: ``thresholds_from`` of the header.
    """
    controller = config.controller
    filled = {name for name in THRESHOLDS if sources.get(name) != "configuration"}
    given = {name: getattr(controller, name) for name in type(controller).model_fields}
    plain = ControllerConfig.model_construct(
        _fields_set=controller.model_fields_set - filled, **given
    )
    return config.model_copy(update={"controller": plain})
