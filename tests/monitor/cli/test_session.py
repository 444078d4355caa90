"""Which calibration a command takes."""

from __future__ import annotations

from typing import Any

import pytest

from monitor import Calibration, MonitorConfig
from monitor.cli.groups import MonitorOptions
from monitor.cli.session import find_calibration
from monitor.errors import ConfigError

NAMES: dict[str, Any] = {"policy_name": "openvla-mini", "env_name": "widowx-put-on", "task": None}
WIDE = {"metrics": {"window": 10}}


def found(config: MonitorConfig) -> Calibration | None:
    return find_calibration(config, MonitorOptions(), **NAMES)


def test_a_configuration_that_names_none_takes_the_shipped_one_where_it_fits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fitted = found(MonitorConfig())
    assert fitted is not None
    assert fitted.config_hash == MonitorConfig().score_hash()
    assert found(MonitorConfig.model_validate(WIDE)) is None
    assert "uncalibrated" in caplog.text


def test_one_that_the_user_names_is_taken_as_it_is() -> None:
    names = {"openvla-mini/widowx-put-on": "calibrations/openvla-mini_widowx-put-on.json"}
    assert found(MonitorConfig.model_validate({**WIDE, "calibrations": names})) is not None
    with pytest.raises(ConfigError, match="does not exist"):
        found(MonitorConfig(calibrations={"openvla-mini/widowx-put-on": "gone.json"}))
    assert found(MonitorConfig(calibrations={})) is None
