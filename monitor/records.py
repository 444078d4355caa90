"""The records that flow through the monitor, in the order in which they arise.

``Step`` (from the loop) -> ``Evidence`` (what is kept of it) -> metrics, faults, score ->
``Decision`` (to the loop) -> one line of ``steps.jsonl`` (see :mod:`monitor.trace`). ``None``
means unknown throughout; no record holds a NaN. Every record is frozen: make a changed copy with
``msgspec.structs.replace``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np
from msgspec import Struct, convert, field
from numpy.typing import NDArray

from monitor.jsonable import jsonable

__all__ = [
    "Alert",
    "Belief",
    "Decision",
    "Evidence",
    "Fault",
    "FloatArray",
    "Mode",
    "Numbers",
    "Step",
]

FloatArray = NDArray[np.float64]
Numbers = tuple[float, ...]


class Mode(str, Enum):
    """Who moves the robot: the policy, the recovery, or neither."""

    TASK = "TASK"
    RECOVER = "RECOVER"
    HALT = "HALT"


class Step(Struct, frozen=True, kw_only=True, eq=False):
    """One control step as the loop hands it in.

    Arrays may be numpy, torch or nested lists, of any float type. :data:`monitor.signals.SIGNALS`
    says who gives each field.

    Attributes:
        action: action that the policy wants, ``(D,)``, environment units.
        token_logits: logits of the N action tokens, ``(N, V)``.
        token_ids: chosen ids, ``(N,)``, counted as the columns of ``token_logits``.
        action_token_range: ids of the action bins within V as ``(low, high)``, half open; None
            where all of V are bins.
        tcp_position: position of the tool centre point, ``(3,)``, metres, robot base frame.
        tcp_quaternion: orientation of the tool, ``(4,)``, w, x, y, z, robot base frame.
        goal_distance: distance left in the present phase of the task, metres (privileged in
            simulation).
        samples: further actions sampled for the same observation, ``(K, D)``, environment units.
        chunk: action chunk, ``(H, D)``, environment units; its first row is ``action``.
        hidden: features of the policy, ``(F,)``, for probes.
        image: image that the policy saw, ``(H, W, 3)`` uint8, RGB.
        gripper: measured opening in [0, 1], 1 = open.
        latency_s: time that the policy took, seconds.
        success: the task's own verdict at this moment, where it exists.
        policy_error: text of the exception that the policy raised; ``action`` is then None.
        env_error: text of the exception that the environment raised.
        decode_ok: False where the policy's tokens did not decode to an action.
        joint_positions: joint positions, ``(J,)``, radians or metres.
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


class Fault(Struct, frozen=True, kw_only=True):
    """Something that no score may hide.

    Attributes:
        code: key of the fault table, for example ``NONFINITE_ACTION``.
        message: text for people.
        detail: facts that JSON can hold: the step, the field, the value.
    """

    code: str
    message: str
    detail: Mapping[str, Any] = field(default_factory=dict)


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is kept of a step: a few floats, exact through JSON, enough to decide again.

    Big arrays (logits, images, samples) are reduced to ``signals`` here; the rest of the monitor
    sees only this record, so a trace that holds it replays bit for bit.

    Attributes:
        action: finite values, ``(D,)``, environment units; None where the action is unusable.
        tcp_position: position of the tool centre point, ``(3,)``, metres.
        tcp_quaternion: orientation of the tool, ``(4,)``, unit norm, w, x, y, z.
        goal_distance: distance left, metres.
        gripper: measured opening in [0, 1], 1 = open.
        latency_s: time that the policy took, seconds.
        success: the task's own verdict.
        policy_error: text of the policy's exception, or None.
        env_error: text of the environment's exception, or None.
        decode_ok: whether the tokens decoded to an action.
        signals: values of this step by metric id, such as ``TB-E`` and ``alpha``.
        tokens: values per token, ``(N,)``, by metric id.
        logits_id: fingerprint of the logits, equal for equal logits.
        image_id: fingerprint of the image, equal for equal images.
        image_std: standard deviation of the image's values, on the scale 0-255.
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

    def to_json(self) -> Any:
        """Return a mapping that JSON can hold, without the fields that are at their default.

        >>> Evidence(goal_distance=0.25).to_json()
        {'goal_distance': 0.25}
        """
        return jsonable(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evidence:
        """Return the record that :meth:`to_json` wrote.

        >>> Evidence.from_json({"goal_distance": 0.25}).goal_distance
        0.25
        """
        return convert(data, cls)


class Belief(Struct, frozen=True, kw_only=True, gc=False):
    """State of the distance filter after a step: x = [d, d_dot] and its covariance.

    Attributes:
        distance: estimated distance left, metres.
        velocity: estimated change of the distance, metres per step.
        var_distance: variance of ``distance``, metres^2.
        cov: covariance of the two, metres^2 per step.
        var_velocity: variance of ``velocity``, (metres per step)^2.
        innovation: measured minus predicted distance at the last update, metres; None before it.
        innovation_var: variance of ``innovation``, metres^2.
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


class Alert(Struct, frozen=True, kw_only=True, gc=False):
    """An edge: something began at this step.

    Attributes:
        kind: "mode", "fault" or "rule".
        code: the mode entered, the fault's code or the rule's name.
        step: index of the step within the episode, from 0.
        message: text for people.
        score: score at that moment, in [0, 1]; None while unknown.
    """

    kind: str
    code: str
    step: int
    message: str
    score: float | None = None


class Decision(Struct, frozen=True, kw_only=True, eq=False):
    """What the monitor makes of one step.

    Attributes:
        step: index within the episode, from 0.
        mode: who moves the robot now.
        score: Score in [0, 1], None while unknown.
        metrics: value by metric id, None while unknown.
        faults: faults present at this step.
        alerts: alerts that begin at this step.
        action: action that may be sent to the robot, ``(D,)`` float64, environment units; None
            when halted.
        belief: state of the distance filter, None before the first distance.
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
