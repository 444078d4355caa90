"""The records of a rollout, in the order in which they arise, and who may watch them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, runtime_checkable

from monitor.records import Decision, Step

__all__ = [
    "EpisodeResult",
    "EpisodeSpec",
    "EpisodeStart",
    "Observer",
    "RunObserver",
    "RunStart",
    "StepRecord",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSpec:
    """What shall be run.

    Attributes:
        scene: index of the scene; the same index is the same scene in every run.
        seed: given to ``env.reset``; None leaves it out. 0 is a seed.
        options: further reset options, for example ``{"disturbance": "object_pushed"}``.
    """

    scene: int
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reset_options(self) -> dict[str, Any]:
        """What ``env.reset`` gets as its options."""
        return {"scene": self.scene, **self.options}


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeStart:
    """An episode begins.

    Attributes:
        episode: its number within the run, from 0.
        attempt: from 1; above 1 where an earlier try was killed.
        spec: what is run.
        instruction: what the policy is asked to do.
        task: key of the task, for example ``put-on``; None where the environment has none.
        env: for observers that look for themselves, such as video.
    """

    episode: int
    attempt: int
    spec: EpisodeSpec
    instruction: str
    task: str | None
    env: Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepRecord:
    """One step, complete before the environment moves.

    Attributes:
        step: index within the episode, from 0.
        inputs: what the monitor was given.
        decision: what it made of that.
        sent: action that goes to the environment, shape ``(D,)``; None where none does.
        policy_ms: time the policy took, milliseconds.
        overhead_us: time the monitor took, microseconds.
        surprise: what the score is made of: peak surprise over the window by signal, in [0, 1].
        world: objects and contacts before the environment moves, as
            :func:`monitor.rollout.scene_state.world_of` reads them; privileged, for nobody but the trace.
    """

    step: int
    inputs: Step
    decision: Decision
    sent: Any
    policy_ms: float
    overhead_us: float
    surprise: Mapping[str, float] = field(default_factory=dict)
    world: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeResult:
    """An episode has ended; also one line of ``episodes.jsonl``.

    Attributes:
        episode: number within the run, from 0.
        attempt: from 1.
        scene: index of the scene.
        seed: as given to ``env.reset``.
        options: further reset options.
        instruction: what the policy was asked to do.
        task: key of the task.
        steps: steps on which the monitor decided.
        success_once: the task was solved at some moment; None where the environment does not say.
        success_at_end: it was solved at the last moment seen.
        success_at_reset: it was solved before anything moved.
        first_success: first step after which it was solved, None if never.
        outcome: "success", "failure", "halted" or "error"; only the first two are the policy's.
        first_alert: step of the first alert.
        peak_score: largest score.
        modes: number of steps by mode.
        faults: number of steps by fault code.
        message: what ended the episode early, or what was raised on the way; empty if nothing.
        wall_s: seconds from reset to end.
        final_info: numbers, flags and texts of the environment's last info.
        final_world: objects and contacts at the end.
    """

    episode: int
    attempt: int
    scene: int
    seed: int | None
    options: Mapping[str, Any]
    instruction: str
    task: str | None
    steps: int
    success_once: bool | None
    success_at_end: bool | None
    success_at_reset: bool | None
    first_success: int | None
    outcome: str
    first_alert: int | None
    peak_score: float | None
    modes: Mapping[str, int]
    faults: Mapping[str, int]
    message: str
    wall_s: float
    final_info: Mapping[str, Any] = field(default_factory=dict)
    final_world: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> EpisodeResult:
        """Read one line of ``episodes.jsonl``; keys that are not known are left out."""
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in record.items() if key in known})


class Observer(Protocol):
    """Watches episodes; the loop calls it and never depends on it."""

    def on_start(self, start: EpisodeStart) -> None:
        """An episode begins: the environment is reset, nothing has moved."""

    def on_step(self, record: StepRecord) -> None:
        """The monitor has decided; the environment has not moved yet."""

    def on_end(self, result: EpisodeResult) -> None:
        """The episode has ended, in whatever way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """A run over several episodes begins or goes on.

    Attributes:
        specs: every episode of the run, by number.
        done: results of those that an earlier process finished.
    """

    specs: Sequence[EpisodeSpec]
    done: Sequence[EpisodeResult]


@runtime_checkable
class RunObserver(Protocol):
    """An observer that also wants to know the whole run."""

    def on_run(self, plan: RunStart) -> None:
        """The run begins; called once, before any episode."""
