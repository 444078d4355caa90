from __future__ import annotations

import numpy as np
import pytest
from filterpy.kalman import KalmanFilter

from monitor.belief.filter import BeliefFilter
from monitor.belief.kalman import KalmanModel, initial, log_det, predict, update


def test_a_hand_worked_step() -> None:
    model = KalmanModel(q_distance=0.0, q_velocity=0.0, r=1.0)
    belief = predict(initial(1.0, model), model)
    # F diag(0.01, 1) F^T = [[1.01, 1], [1, 1]]
    assert (belief.var_distance, belief.cov, belief.var_velocity) == (1.01, 1.0, 1.0)
    after = update(belief, 2.0, model)
    assert after.innovation == 1.0
    assert after.innovation_var == pytest.approx(2.01)
    assert after.distance == pytest.approx(1.0 + 1.01 / 2.01)
    assert after.velocity == pytest.approx(1.0 / 2.01)
    assert after.nis == pytest.approx(1.0 / 2.01)


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
        ours = BeliefFilter(model)
        ours.update(zs[0])
        for z in zs[1:]:
            hole = rng.uniform() < 0.1
            belief = ours.update(None if hole else z)
            theirs.predict()
            if not hole:
                theirs.update(z)
                assert belief is not None
                nis = (theirs.y.T @ np.linalg.inv(theirs.S) @ theirs.y).item()
                assert belief.nis == pytest.approx(nis, rel=1e-9, abs=1e-9)
            assert belief is not None
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
        ours = BeliefFilter(model)
        for t in range(400):
            x = np.array([x[0] + x[1], x[1]]) + rng.normal(size=2) * np.sqrt([1e-4, 4e-4])
            belief = ours.update(float(x[0] + 0.1 * rng.normal()))
            if t > 40 and belief is not None and belief.nis is not None:
                values.append(belief.nis)
    assert np.mean(values) == pytest.approx(1.0, abs=0.05)
    assert np.mean(np.array(values) < 3.84) == pytest.approx(0.95, abs=0.01)


def test_the_covariance_stays_positive_without_measurements_and_with_many() -> None:
    model = KalmanModel(q_distance=0.0, q_velocity=0.0, r=1e-8)
    belief = initial(0.3, model)
    for t in range(5000):
        belief = predict(belief, model)
        if t % 3:
            belief = update(belief, 0.3, model)
        assert belief.var_distance >= 0.0
        assert belief.var_velocity >= 0.0
        assert np.isfinite(log_det(belief, 1e-6))
