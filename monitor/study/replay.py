"""Decide a recorded run again: the proof that a trace is complete, or a look at another setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from monitor.calibration import Calibration
from monitor.config import MonitorConfig
from monitor.jsonable import jsonable
from monitor.pipeline import Monitor
from monitor.records import Decision, Evidence
from monitor.study.runs import Run

__all__ = ["EpisodeReplay", "Replay", "decide_again", "replay_run"]

SHOWN: Final = 10
"""Differences that are listed; their number is always reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDifference:
    """One value that did not come out as recorded."""

    episode: int
    step: int
    field: str
    recorded: Any
    replayed: Any

    def to_text(self) -> str:
        """Return it as text for people."""
        return (
            f"episode {self.episode}, step {self.step}: {self.field} was {self.recorded!r}, "
            f"is now {self.replayed!r}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeReplay:
    """One episode, as recorded and as decided again.

    Attributes:
        episode: number within the run.
        outcome: as recorded; None for one that was killed half-way.
        steps: how many were decided again.
        alert_before: step of the first alert as recorded.
        alert_now: step of the first alert now.
        peak_before: largest score as recorded.
        peak_now: largest score now.
    """

    episode: int
    outcome: str | None
    steps: int
    alert_before: int | None
    alert_now: int | None
    peak_before: float | None
    peak_now: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What came of a replay.

    Attributes:
        run: folder.
        own: the run's own configuration and calibration were used, so all must be identical.
        episodes: episodes in order, also unfinished ones.
        steps: decided again.
        differing: values that differ.
        differences: the first of them.
        recorded_by: revision of the code that recorded the run, None where that is not known.
    """

    run: Path
    own: bool
    episodes: Sequence[EpisodeReplay]
    steps: int
    differing: int
    differences: Sequence[StepDifference]
    recorded_by: str | None = None

    @property
    def identical(self) -> bool:
        """Return whether every value came out as recorded, to the last bit."""
        return self.differing == 0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON for scripts."""
        return {
            "run": str(self.run),
            "own_configuration": self.own,
            "identical": self.identical,
            "steps": self.steps,
            "recorded_by": self.recorded_by,
            "differing": self.differing,
            "differences": jsonable(self.differences),
            "alerts": {"before": self._alerts("alert_before"), "now": self._alerts("alert_now")},
            "episodes": jsonable(self.episodes),
        }

    def to_text(self) -> str:
        """Return it as text for people."""
        head = f"{self.run}: {len(self.episodes)} episodes, {self.steps} steps decided again"
        if self.identical:
            return f"{head}: every metric, score and mode identical"
        lines = [f"{head}: {self.differing} values differ"]
        if self.own:
            lines += [f"  {difference.to_text()}" for difference in self.differences]
            revision = self.recorded_by or "unknown"
            lines.append(f"  recorded by revision {revision}; other code may decide otherwise")
            return "\n".join(lines)
        before, now = self._alerts("alert_before"), self._alerts("alert_now")
        lines += [f"  {name:<26} {before[name]:>4} before  {now[name]:>4} now" for name in before]
        changed = [one for one in self.episodes if one.alert_before != one.alert_now]
        lines += [
            f"  episode {one.episode} ({one.outcome or 'unfinished'}): first alert "
            f"{_step(one.alert_before)} -> {_step(one.alert_now)}, peak "
            f"{_score(one.peak_before)} -> {_score(one.peak_now)}"
            for one in changed
        ]
        lines.append("  actions stay as recorded: what recovery would have changed is not seen")
        return "\n".join(lines)

    def _alerts(self, which: str) -> dict[str, int]:
        def having(outcome: str, *, alert: bool) -> int:
            return sum(
                one.outcome == outcome and (getattr(one, which) is not None) is alert
                for one in self.episodes
            )

        return {
            "episodes with an alert": sum(getattr(one, which) is not None for one in self.episodes),
            "alerts on successes": having("success", alert=True),
            "failures without an alert": having("failure", alert=False),
        }


def replay_run(
    run: Path | str,
    config: MonitorConfig | None = None,
    calibration: Calibration | None = None,
) -> Replay:
    """Decide every recorded step again.

    Args:
        run: folder.
        config: another configuration; None takes the run's own.
        calibration: another calibration; None takes the run's own, which is in its header.

    Raises:
        TraceError: the folder holds no run, or none that can be replayed.
    """
    loaded = Run.load(run)
    monitor = loaded.monitor(config, loaded.calibration if calibration is None else calibration)
    traces: dict[int, tuple[str | None, Sequence[Mapping[str, Any]]]] = {
        one.number: (one.outcome, one.steps) for one in loaded.episodes
    }
    traces.update({number: (None, steps) for number, steps in loaded.unfinished.items()})
    found: list[StepDifference] = []
    episodes = []
    for number in sorted(traces):
        outcome, steps = traces[number]
        decisions = list(decide_again(monitor, steps))
        for step, decision in zip(steps, decisions, strict=True):
            found.extend(_differences(step, decision))
        alerts = [one.step for one in decisions if one.alerts]
        recorded = [step["score"] for step in steps if step["score"] is not None]
        scores = [one.score for one in decisions if one.score is not None]
        episodes.append(
            EpisodeReplay(
                episode=number,
                outcome=outcome,
                steps=len(steps),
                alert_before=next((step["step"] for step in steps if step["alerts"]), None),
                alert_now=alerts[0] if alerts else None,
                peak_before=max(recorded, default=None),
                peak_now=max(scores, default=None),
            )
        )
    return Replay(
        run=loaded.path,
        own=config is None and calibration is None,
        episodes=episodes,
        steps=sum(one.steps for one in episodes),
        differing=len(found),
        differences=found[:SHOWN],
        recorded_by=(loaded.header.get("git") or {}).get("commit"),
    )


def decide_again(monitor: Monitor, steps: Sequence[Mapping[str, Any]]) -> Iterator[Decision]:
    """Feed the evidence of one episode's steps to a monitor."""
    first: Mapping[str, Any] = steps[0] if steps else {}
    monitor.reset(instruction=first.get("instruction") or "", task=first.get("task"))
    for step in steps:
        yield monitor.replay(Evidence.from_json(step["evidence"]))


def _differences(step: Mapping[str, Any], decision: Decision) -> Iterator[StepDifference]:
    """Compare as JSON: what is on disk is all that a reader has."""
    pairs: list[tuple[str, Any, Any]] = [
        ("score", step["score"], jsonable(decision.score)),
        ("mode", step["mode"], decision.mode.value),
        ("faults", step["faults"], [fault.code for fault in decision.faults]),
        (
            "alerts",
            [(one["kind"], one["code"]) for one in step["alerts"]],
            [(one.kind, one.code) for one in decision.alerts],
        ),
    ]
    now = jsonable(decision.metrics)
    before = step["metrics"]
    pairs += [(name, before.get(name), now.get(name)) for name in sorted({*before, *now})]
    for field, recorded, replayed in pairs:
        if recorded != replayed:
            yield StepDifference(
                episode=step["episode"],
                step=step["step"],
                field=field,
                recorded=recorded,
                replayed=replayed,
            )


def _step(step: int | None) -> str:
    return "none" if step is None else f"step {step}"


def _score(score: float | None) -> str:
    return "unknown" if score is None else f"{score:.2f}"
