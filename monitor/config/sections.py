"""Sections of a monitor's configuration, with the shipped values as defaults."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

Response = Literal["ignore", "alert", "recover", "halt"]
Positive = Annotated[FiniteFloat, Field(gt=0)]
NonNegative = Annotated[FiniteFloat, Field(ge=0)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MetricsConfig(_Section):
    """What is measured and how (spec 1 to 7)."""

    window: Annotated[int, Field(ge=4)] = 8
    """W of Valle et al.: 4 is the least that a third difference needs, 5 to 6 was unstable."""
    warmup: Literal["none", "zeros"] = "none"
    """"zeros" is what the replication code writes before the window is full; to compare only."""
    goal_scale_m: Positive | None = None
    """d_max of OT; None takes the episode's first distance, as the replication code does."""
    ti_dt_s: Positive = 1.0
    """Time unit of TI: 1.0 gives m/step^3 (the paper), the control period gives m/s^3."""
    still_path_m: Positive = 0.002
    """Path over the window below which the arm counts as still."""
    gripper_change: Share = 0.05
    """Change of the opening over the window that counts as the gripper moving."""
    reversal_floor_m: Positive = 0.002
    """Translations below this have no direction."""
    reversal_cosine: Annotated[FiniteFloat, Field(ge=-1, lt=0)] = -0.5
    """Consecutive translations with a cosine below this are a reversal."""
    info_window: Annotated[int, Field(ge=2)] | None = None
    """Transitions that the Tri-Info signals look back on, 32 say; None leaves them out, as they
    cost a fifth of an update."""
    peaks: tuple[str, ...] = ()
    """Ids of metrics whose peak over the window is reported too, as ``<id>_peak``."""
    safe: str | None = None
    """Probe on the policy's features, as ``vlawatch safe`` writes it; gives ``SAFE`` and
    ``SAFE-excess``. In a YAML file it is relative to that file."""
    plugins: tuple[str, ...] | None = None
    """Metrics of entry-point group ``vlawatch.metrics`` to load; None loads none."""


class BeliefConfig(_Section):
    """Distance filter and episode score (Darabi et al., GroundControl)."""

    measurement_std_m: Positive = 0.01
    """The paper fixes neither noise; both are fitted on successful rollouts."""
    process_std_m: NonNegative = 0.002
    process_std_velocity: NonNegative = 0.008
    initial_var_distance: Positive = 0.01
    initial_var_velocity: Positive = 1.0
    epsilon: Positive = 1e-6
    """Added to the covariance's diagonal under the log determinant."""
    entropy_weights: tuple[FiniteFloat, FiniteFloat, FiniteFloat] = (1.0, 0.5, 0.8)
    """lambda 1 to 3: covariance, action entropy, NIS."""
    u_weights: tuple[NonNegative, NonNegative, NonNegative, NonNegative, NonNegative] = (
        0.30,
        0.25,
        0.20,
        0.15,
        0.10,
    )
    """skf, prog, mono, eff, osc."""


DEFAULT_SIGNALS: dict[str, float] = {
    "TB-E": 1.0,
    "TB-TP": 1.0,
    "A-AI": 1.0,
    "TCP-AI_p": 1.0,
    "TI": 1.0,
    "REV": 1.0,
    "STILL": 1.0,
    "PROG": 1.0,
    "NIS": 1.0,
}


class ScoreConfig(_Section):
    """The online score: tail surprise per signal, pooled over the window, combined."""

    signals: dict[str, NonNegative] = Field(default_factory=lambda: dict(DEFAULT_SIGNALS))
    """Weight by metric id; the weights matter to ``combine="weights"``, zero leaves one out."""
    combine: Literal["max", "mean_top2", "weights"] = "mean_top2"
    decades: Positive = 5.0
    """A tail probability of 10^-decades gives a surprise of 1."""


class ControllerConfig(_Section):
    """From score to mode (GroundControl eq. 24, made usable)."""

    aggregation: Literal["windowed", "running_max"] = "windowed"
    """"running_max" is as published: it never falls, so RECOVER never ends."""
    tau_recover: NonNegative = 0.45
    tau_halt: NonNegative = 0.75
    hysteresis: NonNegative = 0.05
    """RECOVER ends only below ``tau_recover - hysteresis`` ..."""
    calm_steps: Count = 2
    """... for this many steps in a row ..."""
    dwell: Annotated[int, Field(ge=0)] = 6
    """... and not before this many steps in RECOVER."""
    patience: Count = 12
    """Steps in RECOVER after which the attempt has failed and the next begins."""
    budget: Annotated[int, Field(ge=0)] = 1
    """Attempts at recovery per episode; the next is a HALT."""
    halt_after: Count = 1
    """Steps in a row at or above ``tau_halt`` that halt."""
    enforce: bool = True
    """False watches only: modes and alerts as ever, but the policy's action goes through unless
    it is unusable."""

    @model_validator(mode="after")
    def _ordered(self) -> ControllerConfig:
        if self.tau_recover > self.tau_halt:
            message = f"tau_recover {self.tau_recover} must not exceed tau_halt {self.tau_halt}"
            raise ValueError(message)
        return self


class GripperConfig(_Section):
    """The gripper: where it is in the action, how it is commanded, when it holds something."""

    index: int = -1
    """Index of the gripper command in the action; a negative index counts from the end."""
    open: FiniteFloat = 1.0
    """Command that opens the gripper, clipped to the action space."""
    close: FiniteFloat = -1.0
    """Command that closes the gripper, clipped to the action space."""
    relative: bool = False
    """True if the command is a change of the opening: half-way between ``open`` and ``close``
    then asks for no change."""
    held_opening: tuple[Share, Share] = (0.06, 0.9)
    """Measured openings (0 closed to 1 open) between which a gripper that was commanded to close
    holds an object."""

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


class RecoveryConfig(_Section):
    """Retreat along the arm's own recent safe path."""

    enabled: bool = True
    """False: no retreat is sent, in RECOVER the policy goes on acting."""
    steps: Count = 6
    """Actions of one retreat."""
    raise_m: NonNegative = 0.04
    """How far above the remembered path the arm backs off."""
    memory: Count = 64
    """Safe positions remembered."""
    tolerance_m: Positive = 0.01
    """A remembered position nearer than this counts as reached."""


class FaultsConfig(_Section):
    """Which faults answer how, and the limits of their detectors."""

    respond: dict[str, Response] = Field(default_factory=dict)
    """Response by fault code, over the shipped ones of :data:`monitor.faults.RESPONSES`."""
    off: tuple[str, ...] = ()
    """Families of detectors to leave out, as in :data:`monitor.faults.FAMILIES`."""
    plugins: tuple[str, ...] | None = None
    """Detectors of entry-point group ``vlawatch.faults`` to load; None loads none."""
    action_tolerance: NonNegative = 0.05
    """Share of a dimension's range by which an action may leave its space."""
    deadline_s: Positive | None = None
    """Latest reply of the policy; None takes the control period."""
    late_steps: Count = 3
    stall_steps: Count = 8
    """Steps that the arm must be still in a row."""
    stall_goal_m: NonNegative = 0.02
    """No stall at or below this distance."""
    blind_steps: Count = 8
    """Steps of equal logits under changing pictures."""
    frozen_steps: Count = 5
    black_std: NonNegative = 1.0
    gripper_steps: Count = 15
    unnorm_limits: tuple[Positive, ...] | None = None
    """|q99| per translation dimension of the policy's training data, environment units."""
    unnorm_share: Share = 0.5
    bin_mass: Share = 0.5


class RuleTerm(_Section):
    """A threshold on one metric, or the presence of one fault."""

    metric: str | None = None
    above: FiniteFloat | None = None
    fault: str | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> RuleTerm:
        if (self.metric is None) == (self.fault is None) or (self.metric is None) != (
            self.above is None
        ):
            message = "a term is either {metric: ID, above: NUMBER} or {fault: CODE}"
            raise ValueError(message)
        return self


class Rule(_Section):
    """AND ("all"), OR ("any") or at least k of the terms, for some steps in a row."""

    name: str
    when: Literal["all", "any"] | Count = "any"
    of: Annotated[tuple[RuleTerm, ...], Field(min_length=1)]
    steps: Count = 1
    respond: Response = "alert"


class MonitorConfig(_Section):
    """Everything about one monitor."""

    control_dt_s: Positive = 0.2
    robot: RobotConfig = RobotConfig()
    metrics: MetricsConfig = MetricsConfig()
    belief: BeliefConfig = BeliefConfig()
    score: ScoreConfig = ScoreConfig()
    controller: ControllerConfig = ControllerConfig()
    recovery: RecoveryConfig = RecoveryConfig()
    faults: FaultsConfig = FaultsConfig()
    rules: tuple[Rule, ...] = ()
    calibrations: dict[str, str] = Field(default_factory=dict)
    """Calibration file by key "policy/env" or "policy/env/task"; see ``calibration_for``."""

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
        enters the score is named in ``score.signals``.
        """
        plain = self.metrics.model_copy(update={"peaks": (), "plugins": None, "info_window": None})
        bare = self.model_copy(update={"metrics": plain})
        part = bare.model_dump_json(
            include={"control_dt_s", "metrics", "belief", "score"}, exclude={"metrics": {"safe"}}
        )
        return hashlib.sha256(part.encode()).hexdigest()[:16]
