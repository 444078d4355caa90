"""The records that flow through the monitor, in the order in which they arise.

``Step`` (from the loop) -> ``Evidence`` (what is kept of it) -> ``MetricFrame`` -> ``Belief``
-> ``Decision`` (to the loop). ``None`` means unknown throughout; no record holds a NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Numbers = tuple[float, ...]


class Mode(str, Enum):
    """Who moves the robot: the policy, the recovery, or nobody."""

    TASK = "TASK"
    RECOVER = "RECOVER"
    HALT = "HALT"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """One control step as the loop hands it in; arrays may be numpy or torch, of any float type.

    Attributes:
        action: ``(D,)`` environment units, what the policy wants to do.
        token_logits: ``(N, V)`` logits of the N action tokens.
        token_ids: ``(N,)`` chosen ids, counted as the columns of ``token_logits``.
        action_token_range: ``(low, high)``, half open: the ids of the action bins within V, or
            None where all of V are bins.
        tcp_position: ``(3,)`` metres, robot base frame.
        tcp_quaternion: ``(4,)`` w, x, y, z.
        goal_distance: metres left, by the phase of the task (privileged in simulation).
        samples: ``(K, D)`` further actions sampled for the same observation.
        chunk: ``(H, D)`` planned actions, the first of them ``action``.
        hidden: ``(F,)`` features of the policy, for probes.
        image: ``(H, W, 3)`` uint8, what the policy saw.
        gripper: measured opening in [0, 1], 1 = open.
        latency_s: seconds the policy took.
        success: the task's own verdict at this moment, where it exists.
        policy_error: text of what the policy raised; ``action`` is then None.
        env_error: text of what the environment raised.
        decode_ok: False where the policy's tokens did not decode to an action.
        joint_positions: ``(J,)`` radians or metres.
        extra: scalars that the policy measured itself, by metric id.
    """

    action: Any = None
    token_logits: Any = None
    token_ids: Any = None
    action_token_range: tuple[int, int] | None = None
    tcp_position: Any = None
    tcp_quaternion: Any = None
    goal_distance: Any = None
    samples: Any = None
    chunk: Any = None
    hidden: Any = None
    image: Any = None
    gripper: Any = None
    latency_s: Any = None
    success: Any = None
    policy_error: str | None = None
    env_error: str | None = None
    decode_ok: bool = True
    joint_positions: Any = None
    extra: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that no score may hide.

    Attributes:
        code: as in the fault table, for example ``NONFINITE_ACTION``.
        message: for people.
        detail: JSON-able facts: the step, the field, the value.
    """

    code: str
    message: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is kept of a step: a few floats, exact through JSON, enough to decide again.

    Whatever needs a big array (logits, pictures, samples) is reduced to ``signals`` here; the
    rest of the monitor sees only this record, so a trace that holds it replays bit for bit.

    Attributes:
        action: ``(D,)`` finite values, or None where the action is unusable.
        tcp_position: ``(3,)`` metres.
        tcp_quaternion: ``(4,)`` unit, w, x, y, z.
        goal_distance: metres.
        gripper: opening in [0, 1].
        latency_s: seconds.
        success: the task's own verdict.
        policy_error: text, or None.
        env_error: text, or None.
        decode_ok: whether the tokens decoded.
        signals: values of this step by metric id, such as ``TB-E`` and ``alpha``.
        tokens: values per token by metric id.
        logits_id: fingerprint of the logits, equal for equal logits.
        image_id: fingerprint of the picture.
        image_std: standard deviation of the picture's values, on the scale 0-255.
        problems: faults that can be seen only in the raw step.
    """

    action: Numbers | None = None
    tcp_position: Numbers | None = None
    tcp_quaternion: Numbers | None = None
    goal_distance: float | None = None
    gripper: float | None = None
    latency_s: float | None = None
    success: bool | None = None
    policy_error: str | None = None
    env_error: str | None = None
    decode_ok: bool = True
    signals: Mapping[str, float | None] = field(default_factory=dict)
    tokens: Mapping[str, Numbers] = field(default_factory=dict)
    logits_id: int | None = None
    image_id: int | None = None
    image_std: float | None = None
    problems: tuple[Fault, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able mapping without the fields that are at their default.

        >>> Evidence(goal_distance=0.25).to_json()
        {'goal_distance': 0.25}
        """
        out: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value is None or (one.name == "decode_ok" and value):
                continue
            if one.name == "problems":
                value = [
                    {"code": f.code, "message": f.message, "detail": dict(f.detail)} for f in value
                ]
            elif one.name == "tokens":
                value = {key: list(row) for key, row in value.items()}
            elif isinstance(value, Mapping):
                value = dict(value)
            elif isinstance(value, tuple):
                value = list(value)
            if value == [] or value == {}:
                continue
            out[one.name] = value
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evidence:
        """Read what :meth:`to_json` wrote.

        >>> Evidence.from_json({"goal_distance": 0.25}).goal_distance
        0.25
        """
        given = dict(data)
        for name in ("action", "tcp_position", "tcp_quaternion"):
            if given.get(name) is not None:
                given[name] = tuple(given[name])
        if "tokens" in given:
            given["tokens"] = {key: tuple(row) for key, row in given["tokens"].items()}
        given["problems"] = tuple(Fault(**fault) for fault in given.get("problems", ()))
        return cls(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricFrame:
    """Every metric of one step by id; None where it is not known (yet)."""

    values: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """State of the distance filter after a step: x = [d, d_dot] and its covariance.

    Attributes:
        distance: metres.
        velocity: metres per step.
        var_distance: variance of ``distance``.
        cov: covariance of the two.
        var_velocity: variance of ``velocity``.
        innovation: measured minus predicted distance at the last update, None without one.
        innovation_var: variance of ``innovation``.
        nis: innovation squared over its variance.
    """

    distance: float
    velocity: float
    var_distance: float
    cov: float
    var_velocity: float
    innovation: float | None = None
    innovation_var: float | None = None
    nis: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An edge: something began at this step.

    Attributes:
        kind: "mode", "fault" or "rule".
        code: the mode entered, the fault's code or the rule's name.
        step: index of the step within the episode.
        message: for people.
        score: the score at that moment.
    """

    kind: str
    code: str
    step: int
    message: str
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """What the monitor makes of one step.

    Attributes:
        step: index within the episode, from 0.
        mode: who moves the robot now.
        score: in [0, 1], None while unknown.
        metrics: value by metric id, None while unknown.
        faults: those present at this step.
        alerts: those that begin at this step.
        action: ``(D,)`` float64, may be sent to the robot; None when halted.
        belief: of the distance filter, None before the first distance.
        calibrated: whether the score rests on a calibration or on shipped reference values.
        evidence: what was kept of the step; write it to replay.
    """

    step: int
    mode: Mode
    score: float | None
    metrics: Mapping[str, float | None]
    faults: tuple[Fault, ...]
    alerts: tuple[Alert, ...]
    action: FloatArray | None
    belief: Belief | None
    calibrated: bool
    evidence: Evidence
