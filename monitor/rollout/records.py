"""The records of a rollout in the order in which they arise, and the observer protocols."""

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
    """An episode to run.

    Attributes:
        scene: index of the scene; an index means the same scene in every run.
        seed: passed to ``env.reset``; None leaves it out. 0 is a seed.
        options: further reset options, for example ``{"disturbance": "object_pushed"}``.
    """

    scene: int
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reset_options(self) -> dict[str, Any]:
        """Options for ``env.reset``."""
        return {"scene": self.scene, **self.options}


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeStart:
    """The beginning of an episode.

    Attributes:
        episode: number within the run, from 0.
        attempt: number of the attempt, from 1; above 1 if an earlier one was killed.
        spec: scene, seed and reset options.
        instruction: instruction given to the policy.
        task: key of the task, for example ``put-on``; None if the environment has none.
        env: environment, for observers that read from it, such as video.
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
        inputs: input of the monitor.
        decision: output of the monitor.
        sent: action sent to the environment, shape ``(D,)``; None if none is sent.
        policy_ms: time taken by the policy, milliseconds.
        overhead_us: time taken by the monitor, microseconds.
        surprise: terms of the score: peak surprise over the window by signal, in [0, 1].
        scene_state: objects and contacts before the environment moves, see
            :func:`monitor.rollout.scene_state.read_scene_state`; privileged, for the trace only.
    """

    step: int
    inputs: Step
    decision: Decision
    sent: Any
    policy_ms: float
    overhead_us: float
    surprise: Mapping[str, float] = field(default_factory=dict)
    scene_state: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeResult:
    """The result of an episode; also one line of ``episodes.jsonl``.

    Attributes:
        episode: number within the run, from 0.
        attempt: number of the attempt, from 1.
        scene: index of the scene.
        seed: seed passed to ``env.reset``.
        options: further reset options.
        instruction: instruction given to the policy.
        task: key of the task.
        steps: number of steps that the monitor decided.
        success_once: whether the task was solved at any time; None if the environment does not
            report success.
        success_at_end: whether it was solved at the last observation.
        success_at_reset: whether it was solved before anything moved.
        first_success: first step after which it was solved; None if never.
        outcome: "success", "failure", "halted" or "error"; only the first two are the policy's.
        first_alert: step of the first alert; None without one.
        peak_score: largest score; None while unknown.
        modes: number of steps by mode.
        faults: number of steps by fault code.
        message: reason for an early end and exceptions raised; empty if there were none.
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
        """Read one line of ``episodes.jsonl``; unknown keys are ignored."""
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in record.items() if key in known})


class Observer(Protocol):
    """Observer of episodes; the loop calls it and never depends on it."""

    def on_start(self, start: EpisodeStart) -> None:
        """Handle the beginning of an episode: the environment is reset, nothing has moved."""

    def on_step(self, record: StepRecord) -> None:
        """Handle a step: the monitor has decided, the environment has not moved yet."""

    def on_end(self, result: EpisodeResult) -> None:
        """Handle the end of an episode, whatever ended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """The beginning or resumption of a run of several episodes.

    Attributes:
        specs: every episode of the run, by number.
        done: results of the episodes that an earlier process finished.
    """

    specs: Sequence[EpisodeSpec]
    done: Sequence[EpisodeResult]


@runtime_checkable
class RunObserver(Protocol):
    """An observer that is also notified of the whole run."""

    def on_run(self, start: RunStart) -> None:
        """Handle the beginning of the run; called once, before any episode."""
