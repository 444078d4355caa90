from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from monitor import Calibration, MonitorConfig
from monitor.errors import CalibrationError
from monitor.study.calibration.calibrate import NEVER, calibrate, tail_table
from monitor.study.replay import replay_run
from monitor.study.runs import Run


def test_fits_and_is_used(watched: Path, tmp_path: Path, record: Callable[..., Path]) -> None:
    fitted = calibrate([watched], alpha=0.1)
    assert (fitted.policy, fitted.env, fitted.task) == ("reacher", "world", "reach")
    assert fitted.n_success == len(Run.load(watched).of("success"))
    assert fitted.config_hash == MonitorConfig().score_hash()
    assert set(fitted.signals) >= {"TB-E", "A-AI", "TI"}
    assert 0 < fitted.tau_recover <= 1.0000001
    assert fitted.tau_halt == NEVER
    assert any(line.startswith("tables: watched episodes") for line in fitted.created_from)
    fitted.save(tmp_path / "calibration.json")
    again = Calibration.load(tmp_path / "calibration.json")
    assert again == fitted
    run = record(tmp_path / "run", range(100, 160), calibration=again)
    assert replay_run(run).identical
    loaded = Run.load(run)
    assert loaded.tau_recover == fitted.tau_recover
    successes = loaded.of("success")
    alarms = sum(one.first_alarm(fitted.tau_recover) is not None for one in successes)
    assert alarms / len(successes) < 0.1 + 3 * np.sqrt(0.1 * 0.9 / len(successes)) + 1 / 12
    failures = loaded.of("failure")
    assert all(one.first_alarm(fitted.tau_recover) is not None for one in failures)


def test_same_promise_from_the_half_that_is_held_out(watched: Path) -> None:
    fitted = calibrate([watched], alpha=0.2)
    replay = replay_run(watched, calibration=fitted)
    peaks = {one.episode: one.peak_now for one in replay.episodes}
    held_out = next(line for line in fitted.created_from if line.startswith("thresholds"))
    numbers = [int(part) for part in held_out.rpartition("episodes ")[2].split(", ")]
    above = sum((peaks[number] or 0.0) >= fitted.tau_recover for number in numbers)
    assert above <= 0.2 * (len(numbers) + 1)


def test_refuses_too_few_and_says_how_many(watched: Path) -> None:
    n = len(Run.load(watched).of("success"))
    with pytest.raises(CalibrationError, match=rf"record {2 * 99 - 1 - n} more"):
        calibrate([watched], alpha=0.01)


def test_refuses_mixed_policies_and_doubles(
    watched: Path, tmp_path: Path, record: Callable[..., Path]
) -> None:
    other = record(tmp_path / "other", range(2), policy_name="another")
    with pytest.raises(CalibrationError, match="another policy"):
        calibrate([watched, other])
    with pytest.raises(CalibrationError, match="give every scene once"):
        calibrate([watched, watched])
    with pytest.raises(CalibrationError, match="no runs"):
        calibrate([])


def test_warns_where_the_monitor_stepped_in_and_skips_disturbed(
    tmp_path: Path, record: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    disturbed = record(tmp_path / "disturbed", range(30), disturbance="object_pushed")
    with pytest.raises(CalibrationError, match="found 0"):
        calibrate([disturbed])
    assert not caplog.records


def test_tail_table_is_the_empirical_distribution() -> None:
    values = np.random.default_rng(0).exponential(0.5, 20_000)
    table = tail_table(values.tolist())
    for level, value in zip(table.levels[1:], table.values[1:], strict=True):
        assert np.mean(values <= value) == pytest.approx(level, abs=1e-3)
    assert table.tail_scale == pytest.approx(0.5, rel=0.1)
    constant = tail_table([0.0] * 500, floor=0.01)
    assert constant.tail_scale == 0.01
