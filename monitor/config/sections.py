"""Sections of a monitor's configuration, with the shipped values as defaults.

Every field has a docstring, which ``vlawatch config`` prints; :class:`Unit` and :class:`LeftOut`
add what a docstring should not have to repeat.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from monitor.recorded import MetricId

Response = Literal["ignore", "alert", "recover", "halt"]
Positive = Annotated[FiniteFloat, Field(gt=0)]
NonNegative = Annotated[FiniteFloat, Field(ge=0)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, slots=True)
class Unit:
    """Unit of a field's number."""

    name: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Where a field's value comes from if the configuration leaves the field out."""

    source: str


STEPS: Final = Unit("steps")
METRES: Final = Unit("m")
BY_ROBOT: Final = LeftOut("the command of the environment's robot, where it declares one")
BY_CALIBRATION: Final = LeftOut("the calibration's threshold, where there is a calibration")
BY_SHIPPED: Final = LeftOut("the shipped calibrations, where they fit the score's configuration")


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GripperConfig(_Section):
    """The gripper: where it is in the action, how it is commanded, when it holds an object."""

    index: int = -1
    """Index of the gripper command in the action; a negative index counts from the end."""
    open: Annotated[FiniteFloat, BY_ROBOT] = 1.0
    """Command that opens the gripper, clipped to the action space."""
    close: Annotated[FiniteFloat, BY_ROBOT] = -1.0
    """Command that closes the gripper, clipped to the action space."""
    relative: Annotated[bool, BY_ROBOT] = False
    """True if the command is a change of the opening: half-way between ``open`` and ``close``
    then asks for no change."""
    held_opening: Annotated[tuple[Share, Share], Unit("share of the full opening")] = (0.06, 0.9)
    """Measured openings between which a gripper that was commanded to close holds an object."""

    @model_validator(mode="after")
    def _two_ends(self) -> GripperConfig:
        if self.open == self.close:
            message = (
                f"open and close are both {self.open}; give the two commands that open and close "
                "the gripper"
            )
            raise ValueError(message)
        return self


class RobotConfig(_Section):
    """The robot that is monitored."""

    gripper: GripperConfig = GripperConfig()


class MetricsConfig(_Section):
    """What is measured and how."""

    window: Annotated[int, Field(ge=4), STEPS] = 8
    """Length of the sliding window W (Valle et al.). A third difference needs at least 4; 5 and 6
    were unstable."""
    warmup: Literal["none", "zeros"] = "none"
    """Value of a windowed metric before its window is full: "none" is unknown, "zeros" is what the
    replication code of Valle et al. writes, for comparisons only."""
    goal_scale_m: Annotated[Positive | None, METRES] = None
    """Distance d_max that OT divides by; null takes the first distance of the episode, as the
    replication code does."""
    ti_dt_s: Annotated[Positive, Unit("s")] = 1.0
    """Time step of TI: 1.0 gives m/step^3, as in the paper; the control period gives m/s^3."""
    still_path_m: Annotated[Positive, METRES] = 0.002
    """Path length of the tool over the window below which the arm counts as still."""
    gripper_change: Annotated[Share, Unit("share of the full opening")] = 0.05
    """Change of the opening over the window from which the gripper counts as moving."""
    reversal_floor_m: Annotated[Positive, METRES] = 0.002
    """Length below which a translation has no direction."""
    reversal_cosine: Annotated[FiniteFloat, Field(ge=-1, lt=0)] = -0.5
    """Cosine between consecutive translations below which they are a reversal."""
    info_window: Annotated[Annotated[int, Field(ge=2)] | None, STEPS] = None
    """Number of past transitions that the Tri-Info signals use, for example 32; null leaves these
    signals out, as they cost a fifth of an update."""
    peaks: tuple[MetricId, ...] = ()
    """Ids of metrics whose peak over the window is reported as well, as ``<id>_peak``."""
    safe: str | None = None
    """File of a probe on the policy's features, written by ``vlawatch safe``; the probe gives
    ``SAFE`` and ``SAFE-excess``. A relative path is relative to the YAML file."""
    plugins: tuple[str, ...] | None = None
    """Metrics of the entry-point group ``vlawatch.metrics`` to load; null loads none."""


class BeliefConfig(_Section):
    """Distance filter and episode score (Darabi et al., GroundControl)."""

    measurement_std_m: Annotated[Positive, METRES] = 0.01
    """Standard deviation of the measured distance, fitted on successful rollouts (the paper fixes
    neither noise)."""
    process_std_m: Annotated[NonNegative, METRES] = 0.002
    """Standard deviation of the distance's own change per step, fitted as above."""
    process_std_velocity: Annotated[NonNegative, Unit("m/step per step")] = 0.008
    """Standard deviation of the velocity's change per step, fitted as above."""
    initial_var_distance: Annotated[Positive, Unit("m²")] = 0.01
    """Variance of the distance at the start of an episode."""
    initial_var_velocity: Annotated[Positive, Unit("(m/step)²")] = 1.0
    """Variance of the velocity at the start of an episode."""
    epsilon: Positive = 1e-6
    """Number added to the diagonal of the covariance before its log determinant is taken."""
    entropy_weights: tuple[FiniteFloat, FiniteFloat, FiniteFloat] = (1.0, 0.5, 0.8)
    """Weights lambda 1 to 3 of H: covariance, action entropy, NIS."""
    u_weights: tuple[NonNegative, NonNegative, NonNegative, NonNegative, NonNegative] = (
        0.30,
        0.25,
        0.20,
        0.15,
        0.10,
    )
    """Weights of U: skf, prog, mono, eff, osc."""


DEFAULT_SIGNALS: dict[str, float] = {
    "TB-E": 1.0,
    "TB-TP": 1.0,
    "A-AI": 1.0,
    "TCP-AI_p": 1.0,
    "TI": 1.0,
    "REV": 1.0,
    "STILL": 1.0,
    "NO-PROG": 1.0,
    "NIS": 1.0,
}


class ScoreConfig(_Section):
    """The online score: tail surprise per signal, pooled over the window, combined."""

    signals: dict[MetricId, NonNegative] = Field(default_factory=lambda: dict(DEFAULT_SIGNALS))
    """Weight of each signal by metric id. Weights other than zero matter to ``combine: weights``
    only; a weight of zero leaves the signal out."""
    scorer: str = "surprise"
    """Scorer: a shipped name, an entry point of ``vlawatch.scorers``, or ``module:Class``."""
    combine: Literal["max", "mean_top2", "weights"] = "mean_top2"
    """How the pooled signals become one score: the largest, the mean of the two largest, or the
    weighted mean."""
    decades: Annotated[Positive, Unit("powers of ten")] = 5.0
    """Rarity that counts as a surprise of 1: a tail probability of 10^-decades."""


class ControllerConfig(_Section):
    """From score to mode (GroundControl eq. 24, with hysteresis and a way back)."""

    aggregation: Literal["windowed", "running_max"] = "windowed"
    """Score that the controller sees: "windowed" is the score itself; "running_max" is its maximum
    so far, as published, which never falls, so that RECOVER never ends."""
    tau_recover: Annotated[NonNegative, Unit("score"), BY_CALIBRATION] = 0.45
    """Score from which RECOVER begins."""
    tau_halt: Annotated[NonNegative, Unit("score"), BY_CALIBRATION] = 0.75
    """Score from which HALT begins, after ``halt_after`` steps."""
    hysteresis: Annotated[NonNegative, Unit("score")] = 0.05
    """Margin by which the score must fall below ``tau_recover`` before RECOVER may end."""
    calm_steps: Annotated[Count, STEPS] = 2
    """Consecutive steps that the score must stay below that margin before RECOVER may end."""
    dwell: Annotated[int, Field(ge=0), STEPS] = 6
    """Least number of steps in RECOVER."""
    patience: Annotated[Count, STEPS] = 12
    """Steps in RECOVER after which the attempt has failed and the next one begins."""
    budget: Annotated[int, Field(ge=0), Unit("attempts")] = 2
    """Recovery attempts per episode; one more is a HALT."""
    halt_after: Annotated[Count, STEPS] = 12
    """Consecutive steps at or above ``tau_halt`` that halt. The default is longer than the score's
    window, so that a retreat is tried before a high score alone halts."""
    enforce: bool = True
    """False only watches: modes and alerts are the same, but the policy's action is sent unless it
    is unusable."""

    @model_validator(mode="after")
    def _ordered(self) -> ControllerConfig:
        if self.tau_recover > self.tau_halt:
            message = f"tau_recover {self.tau_recover} must not exceed tau_halt {self.tau_halt}"
            raise ValueError(message)
        return self


class RecoveryConfig(_Section):
    """Retreat along the arm's own recent safe path."""

    enabled: bool = True
    """False sends no retreat: in RECOVER the policy keeps acting."""
    behavior: str = "retreat"
    """Recovery: ``retreat``, ``hold``, an entry point of ``vlawatch.recoveries``, or
    ``module:Class``."""
    steps: Annotated[Count, STEPS] = 6
    """Number of actions of one retreat."""
    raise_m: Annotated[NonNegative, METRES] = 0.04
    """Height above the remembered path at which the arm backs off."""
    memory: Annotated[Count, Unit("positions")] = 64
    """Number of safe positions that are remembered."""
    tolerance_m: Annotated[Positive, METRES] = 0.01
    """Distance below which a remembered position counts as reached."""


class FaultsConfig(_Section):
    """Responses to faults, and the limits of their detectors."""

    respond: dict[str, Response] = Field(default_factory=dict)
    """Response by fault code (ignore, alert, recover or halt), in place of the shipped one."""
    off: tuple[str, ...] = ()
    """Families of detectors to leave out: data, vision_bypass, camera, stall, drop, gripper,
    vocabulary, unnormalisation, latency."""
    plugins: tuple[str, ...] | None = None
    """Detectors of the entry-point group ``vlawatch.faults`` to load; null loads none."""
    action_tolerance: Annotated[NonNegative, Unit("share of the dimension's range")] = 0.05
    """Amount by which an action may leave its space before ACTION_RANGE."""
    deadline_s: Annotated[Positive | None, Unit("s")] = None
    """Latest reply of the policy; null takes the control period."""
    late_steps: Annotated[Count, STEPS] = 3
    """Consecutive late replies that raise LATENCY."""
    stall_steps: Annotated[Count, STEPS] = 8
    """Consecutive steps of a still arm that raise STALL."""
    stall_goal_m: Annotated[NonNegative, METRES] = 0.02
    """Distance to the goal up to which there is no STALL."""
    blind_steps: Annotated[Count, STEPS] = 8
    """Consecutive steps of identical logits under changing images that raise VISION_BYPASS."""
    frozen_steps: Annotated[Count, STEPS] = 5
    """Consecutive identical images from a moving arm that raise CAMERA_FROZEN."""
    black_std: Annotated[NonNegative, Unit("grey levels of 255")] = 1.0
    """Standard deviation of the image below which it is CAMERA_BLACK."""
    gripper_steps: Annotated[Count, STEPS] = 15
    """Steps without an answer to a gripper command that raise GRIPPER_NO_RESPONSE."""
    unnorm_limits: Annotated[
        tuple[Positive, ...] | None,
        Unit("environment units"),
        LeftOut("the least of the action space and of the policy's and environment's statistics"),
    ] = None
    """Largest usual translation per dimension (|q99| of the training data), for UNNORM_MISMATCH;
    null switches the check off."""
    unnorm_share: Annotated[Share, Unit("share of the window")] = 0.5
    """Share of translations beyond ``unnorm_limits`` that raises UNNORM_MISMATCH."""
    bin_mass: Annotated[Share, Unit("probability")] = 0.5
    """Probability of the action bins below which a token is OFF_VOCAB_TOKEN."""


class RuleTerm(_Section):
    """A threshold on one metric, or the presence of one fault."""

    metric: MetricId | None = None
    """Id of the metric; needs ``above``."""
    above: FiniteFloat | None = None
    """Value above which the term holds."""
    fault: str | None = None
    """Code of the fault; the term holds while the fault is present."""

    @model_validator(mode="after")
    def _one_kind(self) -> RuleTerm:
        if (self.metric is None) == (self.fault is None) or (self.metric is None) != (
            self.above is None
        ):
            message = "a term is either {metric: ID, above: NUMBER} or {fault: CODE}"
            raise ValueError(message)
        return self


class Rule(_Section):
    """A response to a combination of metrics and faults."""

    name: str
    """Name of the rule in alerts and traces."""
    when: Literal["all", "any"] | Count = "any"
    """Terms that must hold: "all", "any", or at least this number."""
    of: Annotated[tuple[RuleTerm, ...], Field(min_length=1)]
    """Terms of the rule."""
    steps: Annotated[Count, STEPS] = 1
    """Consecutive steps that the terms must hold."""
    respond: Response = "alert"
    """Response while the rule holds."""


CALIBRATIONS: Final = {"openvla-mini/widowx-put-on": "calibrations/openvla-mini_widowx-put-on.json"}
"""Shipped calibrations, fitted on successful rollouts of clean scenes 10000 to 10219, which
nothing else uses: ``vlawatch run --scenes 10000:10220 --watch-only --out runs/calibration``, then
``vlawatch calibrate runs/calibration --alpha 0.1 --out FILE``."""


class MonitorConfig(_Section):
    """Everything about one monitor."""

    control_dt_s: Annotated[Positive, Unit("s"), LeftOut("the environment's control period")] = 0.2
    """Control period. The environment's own period is used where it declares one."""
    robot: RobotConfig = RobotConfig()
    metrics: MetricsConfig = MetricsConfig()
    belief: BeliefConfig = BeliefConfig()
    score: ScoreConfig = ScoreConfig()
    controller: ControllerConfig = ControllerConfig()
    recovery: RecoveryConfig = RecoveryConfig()
    faults: FaultsConfig = FaultsConfig()
    rules: tuple[Rule, ...] = ()
    """Rules over metrics and faults, each with its own response."""
    calibrations: Annotated[dict[str, str], BY_SHIPPED] = Field(
        default_factory=lambda: dict(CALIBRATIONS)
    )
    """Calibration file by "policy/env" or "policy/env/task", relative to the YAML file or to the
    shipped ones."""

    def calibration_for(self, policy: str, env: str, task: str | None = None) -> str | None:
        """Return the file for this policy, environment and task, the most specific first."""
        keys = [f"{policy}/{env}/{task}"] if task else []
        for key in [*keys, f"{policy}/{env}"]:
            if key in self.calibrations:
                return self.calibrations[key]
        return None

    def score_hash(self) -> str:
        """Return a fingerprint of what shapes the score.

        Thresholds and responses are not in it, nor are metrics that are only reported: one that
        enters the score is named in ``score.signals``. It is taken over the names of trace
        schema 1, where NO-PROG was PROG, so that calibrations fitted then still fit.
        """
        plain = self.metrics.model_copy(update={"peaks": (), "plugins": None, "info_window": None})
        bare = self.model_copy(update={"metrics": plain})
        left_out: dict[str, set[str]] = {"metrics": {"safe"}}
        if self.score.scorer == "surprise":
            left_out["score"] = {"scorer"}
        part = bare.model_dump_json(
            include={"control_dt_s", "metrics", "belief", "score"}, exclude=left_out
        ).replace('"NO-PROG"', '"PROG"')
        return hashlib.sha256(part.encode()).hexdigest()[:16]
