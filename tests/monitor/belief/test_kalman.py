from __future__ import annotations

import numpy as np
import pytest
from filterpy.kalman import KalmanFilter

from monitor.belief.kalman import KalmanModel, State, advance

NAN = float("nan")


def test_a_hand_worked_step() -> None:
    model = KalmanModel(q_distance=0.0, q_velocity=0.0, r=1.0)
    state, other = State(), State()
    advance(state, 1.0, model)
    advance(state, NAN, model)
    # F diag(0.01, 1) F^T = [[1.01, 1], [1, 1]]
    assert (state.var_distance, state.cov, state.var_velocity) == (1.01, 1.0, 1.0)
    advance(other, 1.0, model)
    innovation, variance = advance(other, 2.0, model)
    assert innovation == 1.0
    assert variance == pytest.approx(2.01)
    assert other.distance == pytest.approx(1.0 + 1.01 / 2.01)
    assert other.velocity == pytest.approx(1.0 / 2.01)


def test_agrees_with_filterpy_on_a_thousand_sequences() -> None:
    rng = np.random.default_rng(11)
    for _ in range(1000):
        qd, qv, r = 10.0 ** rng.uniform(-6, 0, size=3)
        model = KalmanModel(q_distance=qd, q_velocity=qv, r=r)
        zs = rng.normal(size=12)
        theirs = KalmanFilter(dim_x=2, dim_z=1)
        theirs.F = np.array([[1.0, 1.0], [0.0, 1.0]])
        theirs.H = np.array([[1.0, 0.0]])
        theirs.R *= r
        theirs.Q = np.diag([qd, qv])
        theirs.P = np.diag([0.01, 1.0])
        theirs.x = np.array([[zs[0]], [0.0]])
        belief = State()
        advance(belief, zs[0], model)
        for z in zs[1:]:
            hole = rng.uniform() < 0.1
            innovation, variance = advance(belief, NAN if hole else z, model)
            theirs.predict()
            if not hole:
                theirs.update(z)
                nis = (theirs.y.T @ np.linalg.inv(theirs.S) @ theirs.y).item()
                assert innovation**2 / variance == pytest.approx(nis, rel=1e-9, abs=1e-9)
            np.testing.assert_allclose(
                [belief.distance, belief.velocity], theirs.x[:, 0], rtol=1e-9, atol=1e-9
            )
            ours_p = [belief.var_distance, belief.cov, belief.cov, belief.var_velocity]
            np.testing.assert_allclose(ours_p, theirs.P.ravel(), rtol=1e-9, atol=1e-9)


def test_nis_is_chi_square_on_data_of_the_filters_own_model() -> None:
    rng = np.random.default_rng(12)
    model = KalmanModel(q_distance=1e-4, q_velocity=4e-4, r=0.01)
    values = []
    for _ in range(150):
        x = np.array([rng.normal(), 0.1 * rng.normal()])
        state = State()
        for t in range(400):
            x = np.array([x[0] + x[1], x[1]]) + rng.normal(size=2) * np.sqrt([1e-4, 4e-4])
            innovation, variance = advance(state, float(x[0] + 0.1 * rng.normal()), model)
            if t > 40:
                values.append(innovation**2 / variance)
    assert np.mean(values) == pytest.approx(1.0, abs=0.05)
    assert np.mean(np.array(values) < 3.84) == pytest.approx(0.95, abs=0.01)


def test_the_covariance_stays_positive_without_measurements_and_with_many() -> None:
    model = KalmanModel(q_distance=0.0, q_velocity=0.0, r=1e-8)
    state = State()
    advance(state, 0.3, model)
    for t in range(5000):
        advance(state, 0.3 if t % 3 else NAN, model)
        assert state.var_distance >= 0.0
        assert state.var_velocity >= 0.0
        assert (state.var_distance + 1e-6) * (state.var_velocity + 1e-6) > state.cov**2
