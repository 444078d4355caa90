from __future__ import annotations

from pathlib import Path

import pytest

from monitor import ConfigError, MonitorConfig, load_config, parse_config
from monitor.config import GripperConfig
from monitor.recorded import upgrade_header


def test_the_shipped_default_is_the_models_default_and_pins_nothing() -> None:
    shipped = load_config("default")
    assert shipped == MonitorConfig()
    assert not shipped.model_fields_set


def test_the_published_preset_has_the_papers_thresholds() -> None:
    controller = load_config("published").controller
    assert (controller.tau_recover, controller.tau_halt) == (0.35, 0.65)
    assert controller.aggregation == "running_max"


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        ({"recovery": {"gripper_index": 6}}, "this key moved to robot.gripper.index"),
        ({"controler": {}}, "did you mean 'controller'?"),
        ({"controller": {"tau_recovr": 0.3}}, "did you mean 'tau_recover'?"),
        ({"rules": [{"name": "x", "off": []}]}, "did you mean 'of'?"),
        ({"rules": [{"name": "x", "of": [{"metrik": "TI", "above": 1}]}]}, "'metric'?"),
        ({"controller": {"tau_recover": 0.9, "tau_halt": 0.5}}, "must not exceed"),
        ({"metrics": {"window": 3}}, "metrics.window"),
        ([1], "top level"),
    ],
)
def test_a_wrong_key_or_value_is_named_with_the_nearest_right_one(data: object, hint: str) -> None:
    with pytest.raises(ConfigError, match="does not fit") as caught:
        parse_config(data)
    assert hint in str(caught.value)


def test_an_unknown_name_lists_the_shipped_ones() -> None:
    with pytest.raises(ConfigError, match="did you mean 'default'"):
        load_config("defualt")


def test_a_file_that_is_missing_or_no_yaml_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(tmp_path / "gone.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(broken)


def test_a_family_of_detectors_is_switched_off_without_quotes(tmp_path: Path) -> None:
    path = tmp_path / "quiet.yaml"
    path.write_text("faults: {off: [camera]}\ncontroller: {enforce: off}\n", encoding="utf-8")
    config = load_config(path)
    assert config.faults.off == ("camera",)
    assert config.controller.enforce is False


def test_the_most_specific_calibration_is_chosen() -> None:
    config = MonitorConfig(calibrations={"p/e": "a.json", "p/e/pick": "b.json"})
    assert config.calibration_for("p", "e", "pick") == "b.json"
    assert config.calibration_for("p", "e", "place") == "a.json"
    assert config.calibration_for("q", "e") is None


def test_the_score_hash_ignores_thresholds_and_sees_windows() -> None:
    base = MonitorConfig()
    assert base.score_hash() == parse_config({"controller": {"tau_halt": 0.9}}).score_hash()
    assert base.score_hash() != parse_config({"metrics": {"window": 10}}).score_hash()


def test_a_configuration_that_an_earlier_version_recorded_is_read() -> None:
    recovery = MonitorConfig().recovery.model_dump(mode="json")
    gripper = {"gripper_index": 6, "gripper_open": -1.0, "gripper_close": 1.0}
    old = {"monitor": {"recovery": {**recovery, **gripper, "held_opening": [0.1, 0.8]}}}
    config = parse_config(upgrade_header(old)["monitor"])
    assert config.recovery == MonitorConfig().recovery
    assert config.robot.gripper == GripperConfig(
        index=6, open=-1.0, close=1.0, held_opening=(0.1, 0.8)
    )
    now = {"monitor": config.model_dump(mode="json")}
    assert upgrade_header(now)["monitor"] == now["monitor"]
