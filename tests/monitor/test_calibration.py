from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from monitor import (
    Calibration,
    CalibrationError,
    ConfigError,
    Monitor,
    MonitorConfig,
    TailTable,
    load_config,
)
from monitor.config import config_folder

TABLE = TailTable(levels=(0.0, 0.9), values=(0.1, 0.25), tail_scale=0.05)


def test_a_saved_calibration_reads_back_exactly(tmp_path: Path) -> None:
    one = Calibration(
        policy="p", env="e", alpha=0.1, n_success=19, tau_recover=0.1 + 0.2, tau_halt=1.5,
        signals={"TB-E": TABLE}, created_from=("runs/a",), config_hash="ab",
    )  # fmt: skip
    one.save(tmp_path / "deep" / "c.json")
    assert Calibration.load(tmp_path / "deep" / "c.json") == one


@pytest.mark.parametrize("text", ["", "{", "[]", '{"policy": "p"}'])
def test_a_broken_file_is_refused_with_the_remedy(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CalibrationError, match="vlawatch calibrate"):
        Calibration.load(path)
    with pytest.raises(CalibrationError, match="gone"):
        Calibration.load(tmp_path / "gone.json")


@pytest.mark.parametrize(
    ("levels", "values"),
    [((0.0,), (1.0,)), ((0.0, 0.5), (1.0,)), ((0.5, 0.5), (0.0, 1.0)), ((0.0, 0.5), (1.0, 0.0))],
)
def test_a_table_that_is_no_distribution_is_refused(
    levels: tuple[float, ...], values: tuple[float, ...]
) -> None:
    with pytest.raises(ValidationError, match="levels"):
        TailTable(levels=levels, values=values, tail_scale=1.0)


@pytest.mark.parametrize("metrics", [{}, {"peaks": ("TI",)}, {"info_window": 16}, {"window": 10}])
def test_thresholds_of_another_score_are_refused(metrics: dict[str, object]) -> None:
    given = Calibration(
        policy="p", env="e", alpha=0.1, n_success=19, tau_recover=0.3, tau_halt=1.5,
        signals={"TB-E": TABLE}, config_hash=MonitorConfig().score_hash(),
    )  # fmt: skip
    config = MonitorConfig.model_validate({"metrics": metrics})
    space = {"action_low": [-1.0] * 7, "action_high": [1.0] * 7}
    if "window" in metrics:
        with pytest.raises(ConfigError, match=r"p/e .*vlawatch calibrate"):
            Monitor(config, calibration=given, **space)
        given = given.model_copy(update={"config_hash": ""})
    assert Monitor(config, calibration=given, **space).tau_recover == 0.3


def test_every_shipped_calibration_fits_the_configuration_that_names_it() -> None:
    config = load_config("default")
    for key, name in config.calibrations.items():
        shipped = Calibration.load(config_folder() / name)
        assert key == f"{shipped.policy}/{shipped.env}"
        Monitor(config, action_low=[-1.0] * 7, action_high=[1.0] * 7, calibration=shipped)
