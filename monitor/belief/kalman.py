"""Constant-velocity Kalman filter over the goal distance: pure functions (spec 8).

State x = [d, d_dot], F = [[1, 1], [0, 1]], H = [1, 0]; two numbers, so plain floats. Darabi et
al., "GroundControl", arXiv 2606.20479.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from monitor.records import Belief


@dataclass(frozen=True, slots=True, kw_only=True)
class KalmanModel:
    """Noise of the filter.

    Attributes:
        q_distance: process variance of the distance, metres^2 per step.
        q_velocity: process variance of the velocity.
        r: measurement variance, metres^2.
        initial_distance: first variance of the distance.
        initial_velocity: first variance of the velocity.
    """

    q_distance: float
    q_velocity: float
    r: float
    initial_distance: float = 0.01
    initial_velocity: float = 1.0


def initial(distance: float, model: KalmanModel) -> Belief:
    """Return the belief at the first measured distance: x_0 = [d_0, 0]."""
    return Belief(
        distance=distance,
        velocity=0.0,
        var_distance=model.initial_distance,
        cov=0.0,
        var_velocity=model.initial_velocity,
    )


def predict(belief: Belief, model: KalmanModel) -> Belief:
    """Return the belief one step on, without a measurement."""
    a, b, c = belief.var_distance, belief.cov, belief.var_velocity
    return Belief(
        # x' = F x
        distance=belief.distance + belief.velocity,
        velocity=belief.velocity,
        # P' = F P F^T + Q
        var_distance=a + 2.0 * b + c + model.q_distance,
        cov=b + c,
        var_velocity=c + model.q_velocity,
    )


def update(belief: Belief, z: float, model: KalmanModel) -> Belief:
    """Return the predicted ``belief`` corrected by the measured distance ``z``."""
    return _correct(
        belief.distance, belief.velocity, belief.var_distance, belief.cov, belief.var_velocity,
        z, model.r,
    )  # fmt: skip


def advance(belief: Belief, z: float, model: KalmanModel) -> Belief:
    """Return ``update(predict(belief, model), z, model)``, without the record in between."""
    a, b, c = belief.var_distance, belief.cov, belief.var_velocity
    velocity = belief.velocity
    return _correct(
        belief.distance + velocity, velocity, a + 2.0 * b + c + model.q_distance, b + c,
        c + model.q_velocity, z, model.r,
    )  # fmt: skip


def _correct(
    distance: float, velocity: float, a: float, b: float, c: float, z: float, r: float
) -> Belief:
    # nu = z - H x,  S = H P H^T + R,  K = P H^T / S
    nu = z - distance
    s = a + r
    k0 = a / s
    k1 = b / s
    # Joseph form P = (I - K H) P (I - K H)^T + K R K^T keeps P positive under rounding.
    i0 = 1.0 - k0
    return Belief(
        distance=distance + k0 * nu,
        velocity=velocity + k1 * nu,
        var_distance=i0 * i0 * a + k0 * k0 * r,
        cov=i0 * (b - k1 * a) + k0 * k1 * r,
        var_velocity=c - 2.0 * k1 * b + k1 * k1 * a + k1 * k1 * r,
        innovation=nu,
        innovation_var=s,
        nis=nu * nu / s,
    )


def log_det(belief: Belief, epsilon: float) -> float:
    """Return log det(P + epsilon I)."""
    a = belief.var_distance + epsilon
    c = belief.var_velocity + epsilon
    return log(a * c - belief.cov * belief.cov)
