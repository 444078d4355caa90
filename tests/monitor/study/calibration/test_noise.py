from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from monitor import Calibration, Monitor, Step
from monitor.belief.kalman import KalmanModel
from monitor.calibration import FilterNoise
from monitor.config import BeliefConfig
from monitor.errors import CalibrationError
from monitor.study.calibration.calibrate import calibrate
from monitor.study.calibration.noise import fit_noise, log_likelihood
from monitor.study.replay import replay_run
from monitor.study.runs import Run
from monitor.vector import VectorMonitor

TRUE = FilterNoise(measurement_std_m=0.01, process_std_m=0.004, process_std_velocity=0.002)


def simulated(episodes: int, steps: int, seed: int = 0) -> list[list[float | None]]:
    """Distances of the filter's own model with the noises above; some are missing."""
    rng = np.random.default_rng(seed)
    out: list[list[float | None]] = []
    for _ in range(episodes):
        distance, velocity, row = 0.5, -0.01, []
        for _ in range(steps):
            distance += velocity + TRUE.process_std_m * rng.standard_normal()
            velocity += TRUE.process_std_velocity * rng.standard_normal()
            seen = distance + TRUE.measurement_std_m * rng.standard_normal()
            row.append(None if rng.uniform() < 0.02 else float(seen))
        out.append(row)
    return out


def model(noise: FilterNoise) -> KalmanModel:
    return KalmanModel.of(BeliefConfig(), noise)


def test_known_noises_are_found_again() -> None:
    data = simulated(12, 120)
    far_off = BeliefConfig(measurement_std_m=0.1, process_std_m=0.0001, process_std_velocity=0.05)
    found = fit_noise(data, far_off)
    assert found.measurement_std_m == pytest.approx(TRUE.measurement_std_m, rel=0.1)
    assert found.process_std_m == pytest.approx(TRUE.process_std_m, rel=0.4)
    assert found.process_std_velocity == pytest.approx(TRUE.process_std_velocity, rel=0.25)
    assert log_likelihood(data, model(found)) >= log_likelihood(data, model(TRUE))
    fresh = simulated(12, 120, seed=1)
    assert log_likelihood(fresh, model(found)) == pytest.approx(
        log_likelihood(fresh, model(TRUE)), rel=0.005
    )


def test_a_noiseless_distance_still_gives_a_filter() -> None:
    found = fit_noise([[0.5 - 0.01 * t for t in range(60)]] * 2, BeliefConfig())
    assert found.measurement_std_m > 0.0
    assert np.isfinite(list(found.model_dump().values())).all()


def test_too_few_distances_are_refused() -> None:
    with pytest.raises(CalibrationError, match="at least 50"):
        fit_noise([[0.5, None, 0.4]], BeliefConfig())


def test_a_calibration_carries_its_noises_to_the_filters(watched: Path, tmp_path: Path) -> None:
    fitted = calibrate([watched], alpha=0.2, noise=True)
    fitted.save(tmp_path / "calibration.json")
    fitted = Calibration.load(tmp_path / "calibration.json")
    assert fitted.noise is not None
    assert fitted.signals["NIS"] != calibrate([watched], alpha=0.2).signals["NIS"]
    high = np.ones(7)
    with_it, without = (
        Monitor(calibration=one, action_low=-high, action_high=high) for one in (fitted, None)
    )
    vector = VectorMonitor(num_envs=1, calibration=fitted, action_low=-high, action_high=high)
    for distance in (0.5, 0.48, 0.47):
        step = Step(action=np.zeros(7), goal_distance=distance)
        one, other = with_it.update(step), without.update(step)
        many = vector.update(Step(action=np.zeros((1, 7)), goal_distance=np.array([distance])))
    assert one.metrics["NIS"] != other.metrics["NIS"]
    assert many.metrics["NIS"][0] == pytest.approx(one.metrics["NIS"], abs=1e-9)
    assert replay_run(watched, calibration=fitted).episodes
    assert Run.load(watched).config.belief == BeliefConfig()
