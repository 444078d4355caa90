"""Thresholds: explicit YAML, then the calibration, then the default; said, recorded, replayed."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from monitor import Calibration, ConfigError, Monitor, MonitorConfig, TailTable, load_config
from monitor.thresholds import choose_thresholds, threshold_header

TABLE = TailTable(levels=(0.0, 0.9), values=(0.1, 0.25), tail_scale=0.05)
SPACE: dict[str, Any] = {"action_low": [-1.0] * 7, "action_high": [1.0] * 7}


@pytest.fixture
def fitted() -> Calibration:
    return Calibration(
        policy="p", env="e", alpha=0.1, n_success=19, tau_recover=0.6, tau_halt=0.8,
        signals={"TB-E": TABLE},
    )  # fmt: skip


def from_yaml(folder: Path, text: str) -> MonitorConfig:
    path = folder / "monitor.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(path)


def test_a_threshold_in_the_yaml_wins_over_the_calibration_and_is_said_once(
    tmp_path: Path, fitted: Calibration, caplog: pytest.LogCaptureFixture
) -> None:
    config = from_yaml(tmp_path, "controller: {tau_recover: 0.3125}\n")
    for _ in range(3):
        monitor = Monitor(config, calibration=fitted, **SPACE)
    assert (monitor.tau_recover, monitor.tau_halt) == (0.3125, 0.8)
    said = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert said == [
        "controller.tau_recover is 0.3125 in the configuration and 0.6 in the calibration; "
        "using 0.3125"
    ]
    assert threshold_header(config.controller, fitted) == {
        "thresholds": {"tau_recover": 0.3125, "tau_halt": 0.8},
        "thresholds_from": {"tau_recover": "configuration", "tau_halt": "calibration"},
    }


def test_a_threshold_that_is_the_default_wins_too_where_it_is_written(
    tmp_path: Path, fitted: Calibration
) -> None:
    default = MonitorConfig().controller.tau_recover
    config = from_yaml(tmp_path, f"controller: {{tau_recover: {default}}}\n")
    assert Monitor(config, calibration=fitted, **SPACE).tau_recover == default


@pytest.mark.parametrize("text", ["", "controller: {budget: 3}\n"])
def test_what_the_yaml_leaves_out_is_the_calibrations(
    tmp_path: Path, fitted: Calibration, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    monitor = Monitor(from_yaml(tmp_path, text), calibration=fitted, **SPACE)
    assert (monitor.tau_recover, monitor.tau_halt) == (0.6, 0.8)
    assert not caplog.records


def test_the_shipped_default_pins_no_threshold(fitted: Calibration) -> None:
    assert Monitor(load_config("default"), calibration=fitted, **SPACE).tau_recover == 0.6


def test_thresholds_of_two_sources_that_are_not_in_order_are_refused() -> None:
    config = MonitorConfig.model_validate({"controller": {"tau_recover": 0.7}})
    with pytest.raises(ConfigError, match=r"0\.7 \(configuration\).* 0\.65 \(calibration\)"):
        choose_thresholds(config.controller, 0.6, 0.65)


def test_a_run_reads_back_with_the_thresholds_that_were_in_force(
    tmp_path: Path, fitted: Calibration
) -> None:
    from monitor.study.runs import Run

    config = from_yaml(tmp_path, "controller: {tau_recover: 0.3}\n")
    header = {
        "schema": 1,
        "env": {"name": "e", **SPACE},
        "monitor": config.model_dump(mode="json"),
        "calibration": fitted.model_dump(mode="json"),
        **threshold_header(config.controller, fitted),
    }
    (tmp_path / "run.json").write_text(json.dumps(header), encoding="utf-8")
    run = Run.load(tmp_path)
    monitor = run.monitor(calibration=run.calibration)
    assert (run.tau_recover, run.tau_halt) == (monitor.tau_recover, monitor.tau_halt) == (0.3, 0.8)
    other = fitted.model_copy(update={"tau_recover": 0.7, "tau_halt": 0.9})
    monitor = run.monitor(calibration=other)
    assert (monitor.tau_recover, monitor.tau_halt) == (0.3, 0.9)


@pytest.mark.parametrize("calibrated", [True, False])
def test_a_run_of_an_earlier_version_keeps_what_was_in_force_then(
    tmp_path: Path, fitted: Calibration, calibrated: bool
) -> None:
    from monitor.study.runs import Run

    config = MonitorConfig.model_validate({"controller": {"tau_recover": 0.3}})
    dumped = config.model_dump(mode="json")
    dumped.pop("robot")
    dumped["recovery"] |= {"gripper_index": 6, "held_opening": [0.1, 0.8]}
    header = {
        "schema": 1,
        "env": {"name": "e", **SPACE},
        "monitor": dumped,
        "calibration": fitted.model_dump(mode="json") if calibrated else None,
    }
    (tmp_path / "run.json").write_text(json.dumps(header), encoding="utf-8")
    run = Run.load(tmp_path)
    monitor = run.monitor(calibration=run.calibration)
    expected = 0.6 if calibrated else 0.3
    assert run.tau_recover == monitor.tau_recover == expected
    assert monitor.config.robot.gripper.index == 6
    assert run.monitor(calibration=fitted).tau_recover == 0.6
