"""The observer that writes a run to disk."""

from __future__ import annotations

from typing import Any, final

from monitor.records import Decision
from monitor.rollout.records import EpisodeResult, EpisodeStart, StepRecord
from monitor.trace import RunWriter

__all__ = ["TraceRecorder", "step_line"]


@final
class TraceRecorder:
    """Write every step when it is decided and every episode when it ends.

    Args:
        writer: writer of the run's folder; the caller closes it.
    """

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._start: EpisodeStart | None = None

    def on_start(self, start: EpisodeStart) -> None:
        """Remember the episode that the next steps belong to."""
        self._start = start

    def on_step(self, record: StepRecord) -> None:
        """Append one line to ``steps.jsonl``."""
        if self._start is not None:
            self._writer.write_step(step_line(self._start, record))

    def on_end(self, result: EpisodeResult) -> None:
        """Append one line to ``episodes.jsonl``."""
        self._writer.write_episode({field: getattr(result, field) for field in _EPISODE_FIELDS})


_EPISODE_FIELDS = tuple(EpisodeResult.__dataclass_fields__)


def step_line(start: EpisodeStart, record: StepRecord) -> dict[str, Any]:
    """Return one line of ``steps.jsonl`` (see :mod:`monitor.trace`), with arrays as they are."""
    decision, inputs = record.decision, record.inputs
    line: dict[str, Any] = {
        "episode": start.episode,
        "attempt": start.attempt,
        "scene": start.spec.scene,
        "task": start.task,
        "step": record.step,
        "action": inputs.action,
        "sent": record.sent,
        "score": decision.score,
        "mode": decision.mode,
        "faults": [fault.code for fault in decision.faults],
        "alerts": _alerts(decision),
        "metrics": decision.metrics,
        "surprise": record.surprise,
        "goal_distance": inputs.goal_distance,
        "tcp_position": inputs.tcp_position,
        "joint_positions": inputs.joint_positions,
        "success": inputs.success,
        "policy_ms": record.policy_ms,
        "overhead_us": record.overhead_us,
        "calibrated": decision.calibrated,
        "evidence": decision.evidence,
    }
    if record.scene_state:
        line["world"] = record.scene_state
    if record.step == 0:
        line["instruction"] = start.instruction
    return line


def _alerts(decision: Decision) -> list[dict[str, Any]]:
    return [
        {"kind": alert.kind, "code": alert.code, "message": alert.message, "score": alert.score}
        for alert in decision.alerts
    ]
