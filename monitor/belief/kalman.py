"""NIS: constant-velocity Kalman filter over the goal distance.

State x = [d, d_dot], F = [[1, 1], [0, 1]], H = [1, 0]; two numbers, so plain floats. Darabi et
al., "GroundControl", arXiv 2606.20479. The paper fixes neither noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan

from monitor.calibration import FilterNoise
from monitor.config import BeliefConfig
from monitor.stage import MetricInfo, MetricStage, Setup, StepRow, compiled
from monitor.stage.info import DARABI

INFO = MetricInfo(
    id="NIS",
    meaning="squared innovation of the distance filter over its variance",
    high=None,
    warmup=2,
    needs=("goal_distance",),
    privileged=True,
    source=DARABI,
    typical=(0.45, 3.0, 8.0),
    of_motion=True,
    column="nis",
)


@dataclass(slots=True)
class State:
    """Belief after the last step; ``distance`` is NaN before the first measurement."""

    distance: float = nan
    velocity: float = nan
    var_distance: float = nan
    cov: float = nan
    var_velocity: float = nan


@dataclass(slots=True)
class KalmanModel:
    """Noise of the filter.

    Attributes:
        q_distance: Process variance of the distance, metres^2 per step.
        q_velocity: Process variance of the velocity.
        r: Measurement variance, metres^2.
        initial_distance: First variance of the distance.
        initial_velocity: First variance of the velocity.
    """

    q_distance: float = 4e-6
    q_velocity: float = 6.4e-5
    r: float = 1e-4
    initial_distance: float = 0.01
    initial_velocity: float = 1.0

    @classmethod
    def of(cls, belief: BeliefConfig, noise: FilterNoise | None) -> KalmanModel:
        """Return the noise as configured, or as a calibration has fitted it."""
        stds = belief if noise is None else noise
        return cls(
            q_distance=stds.process_std_m**2,
            q_velocity=stds.process_std_velocity**2,
            r=stds.measurement_std_m**2,
            initial_distance=belief.initial_var_distance,
            initial_velocity=belief.initial_var_velocity,
        )


@dataclass
class Out:
    """The belief after this step, and the innovation where there was a measurement."""

    nis: float = nan
    distance: float = nan
    velocity: float = nan
    var_distance: float = nan
    cov: float = nan
    var_velocity: float = nan
    innovation: float = nan
    innovation_var: float = nan


@compiled
def advance(state: State, z: float, model: KalmanModel) -> tuple[float, float]:
    """Predict one step and correct by the measured distance ``z``; NaN only predicts.

    Returns:
        The innovation and its variance, both NaN where nothing was corrected.

    >>> state = State()
    >>> advance(state, 1.0, KalmanModel()), state.distance, state.velocity
    ((nan, nan), 1.0, 0.0)
    >>> model = KalmanModel(q_distance=0.0, q_velocity=0.0, r=1.0)
    >>> [round(x, 4) for x in advance(state, 1.5, model)], round(state.distance, 4)
    ([0.5, 2.01], 1.2512)
    """
    if isnan(state.distance):
        if not isnan(z):
            state.distance, state.velocity, state.cov = z, 0.0, 0.0
            state.var_distance = model.initial_distance
            state.var_velocity = model.initial_velocity
        return nan, nan
    # x' = F x, P' = F P F^T + Q
    d, v = state.distance + state.velocity, state.velocity
    a, b, c = state.var_distance, state.cov, state.var_velocity
    a, b, c = a + 2.0 * b + c + model.q_distance, b + c, c + model.q_velocity
    innovation = innovation_var = nan
    if not isnan(z):
        # nu = z - H x, S = H P H^T + R, K = P H^T / S
        r = model.r
        innovation, innovation_var = z - d, a + r
        k0, k1 = a / innovation_var, b / innovation_var
        i0 = 1.0 - k0
        d, v = d + k0 * innovation, v + k1 * innovation
        # Joseph form P = (I - K H) P (I - K H)^T + K R K^T keeps P positive under rounding.
        before, cov = a, b
        a = i0 * i0 * before + k0 * k0 * r
        b = i0 * (cov - k1 * before) + k0 * k1 * r
        c = c - 2.0 * k1 * cov + k1 * k1 * before + k1 * k1 * r
    state.distance, state.velocity = d, v
    state.var_distance, state.cov, state.var_velocity = a, b, c
    return innovation, innovation_var


@compiled
def update(state: State, step: StepRow, out: Out, limits: KalmanModel) -> None:
    """Take one step."""
    innovation, innovation_var = advance(state, step.goal_distance, limits)
    out.nis = nan
    if not isnan(innovation):
        out.nis = innovation * innovation / innovation_var
    out.innovation, out.innovation_var = innovation, innovation_var
    out.distance, out.velocity = state.distance, state.velocity
    out.var_distance, out.cov, out.var_velocity = state.var_distance, state.cov, state.var_velocity


def configure(setup: Setup) -> KalmanModel:
    """Return the noise in force."""
    return KalmanModel.of(setup.config.belief, setup.noise)


METRIC = MetricStage(
    name="kalman",
    info=(INFO,),
    state=State,
    limits=KalmanModel,
    out=Out,
    update=update,
    configure=configure,
)
