"""A run read back for study: every finished episode with its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from monitor.calibration import Calibration
from monitor.config import MonitorConfig, parse_config
from monitor.pipeline import Monitor
from monitor.study.statistics.detection import prefix_peak
from monitor.thresholds import as_recorded
from monitor.trace import RunFolder, TraceError

__all__ = ["OUTCOMES", "Episode", "Run"]

OUTCOMES: Final = ("success", "failure", "halted", "error")
NOTHING_SENT: Final = "no action was ever sent to the environment"


@dataclass(frozen=True)
class Episode:
    """One finished episode.

    Attributes:
        record: its line of ``episodes.jsonl``.
        steps: its lines of ``steps.jsonl``.
    """

    record: Mapping[str, Any]
    steps: Sequence[Mapping[str, Any]]

    @property
    def number(self) -> int:
        """Return the index within the run."""
        return int(self.record["episode"])

    @property
    def scene(self) -> int:
        """Return the index of the scene."""
        return int(self.record["scene"])

    @property
    def length(self) -> int:
        """Return the number of steps on which the monitor decided."""
        return int(self.record["steps"])

    @property
    def outcome(self) -> str:
        """As recorded; an episode in which nothing was ever sent is an error, whatever it says."""
        outcome = str(self.record["outcome"])
        if outcome in ("success", "failure") and not self.acted:
            return "error"
        return outcome

    @property
    def acted(self) -> bool:
        """Return whether any action reached the environment."""
        if not self.length:
            return False
        return not self.steps or any(step.get("sent") is not None for step in self.steps)

    @property
    def message(self) -> str:
        """What ended the episode early."""
        text = str(self.record.get("message") or "")
        if self.outcome == "error" and not self.acted and not text:
            return NOTHING_SENT
        return text

    @property
    def disturbance(self) -> str | None:
        """Return the kind of disturbance, None for a clean episode."""
        kind = (self.record.get("options") or {}).get("disturbance")
        return None if kind is None else str(kind)

    @cached_property
    def scores(self) -> list[float | None]:
        """Return the score by step."""
        return [step.get("score") for step in self.steps]

    @property
    def peak(self) -> float | None:
        """Return the largest score of the episode."""
        known = prefix_peak(self.scores)
        return self.record.get("peak_score") if known is None else known

    @property
    def first_alert(self) -> int | None:
        """Return the step of the first alert of any kind."""
        return self.record.get("first_alert")

    def first_alarm(self, tau: float) -> int | None:
        """Return the step at which the score first reached ``tau``."""
        above = (i for i, score in enumerate(self.scores) if score is not None and score >= tau)
        return next(above, None)

    def series(self, metric: str) -> list[float | None]:
        """One metric by step, None while it is not known."""
        return [(step.get("metrics") or {}).get(metric) for step in self.steps]


@dataclass(frozen=True)
class Run:
    """A run folder, read once.

    Attributes:
        path: where it lies.
        header: content of ``run.json``; empty where that is missing.
        episodes: finished ones, in order.
        unfinished: steps by number of episodes that were killed half-way.
    """

    path: Path
    header: Mapping[str, Any]
    episodes: Sequence[Episode]
    unfinished: Mapping[int, Sequence[Mapping[str, Any]]]

    @classmethod
    def load(cls, run: RunFolder | Path | str) -> Run:
        """Read a folder, also one that is still being written."""
        folder = run if isinstance(run, RunFolder) else RunFolder(run)
        steps = folder.steps()
        episodes = [
            Episode(record=record, steps=steps.pop(record["episode"], []))
            for record in folder.episodes()
        ]
        has_header = (folder.path / "run.json").exists()
        header = folder.header if has_header else {}
        return cls(path=folder.path, header=header, episodes=episodes, unfinished=steps)

    def of(self, *outcomes: str) -> list[Episode]:
        """Episodes of these outcomes."""
        return [episode for episode in self.episodes if episode.outcome in outcomes]

    def only(self, episodes: Sequence[Episode]) -> Run:
        """The same run, looking at some of its episodes."""
        return replace(self, episodes=list(episodes), unfinished={})

    @property
    def policy(self) -> str:
        """Return the name of the policy."""
        return str((self.header.get("policy") or {}).get("name", "unknown policy"))

    @property
    def env(self) -> str:
        """Return the name of the environment."""
        return str((self.header.get("env") or {}).get("name", "unknown environment"))

    @property
    def calibration(self) -> Calibration | None:
        """Return the calibration that the run used."""
        given = self.header.get("calibration")
        return None if given is None else Calibration.model_validate(given)

    @property
    def config(self) -> MonitorConfig:
        """Return the configuration of the run's monitor."""
        given = parse_config(self.header.get("monitor") or {}, source=f"{self.path}/run.json")
        return as_recorded(given, self.header.get("thresholds_from") or {})

    @property
    def tau_recover(self) -> float:
        """Return the threshold in force during the run."""
        return self._threshold("tau_recover")

    @property
    def tau_halt(self) -> float:
        """Return the threshold in force during the run."""
        return self._threshold("tau_halt")

    def _threshold(self, name: str) -> float:
        recorded = (self.header.get("thresholds") or {}).get(name)
        return float(getattr(self.config.controller, name) if recorded is None else recorded)

    def monitor(
        self, config: MonitorConfig | None = None, calibration: Calibration | None = None
    ) -> Monitor:
        """Make a monitor for this run's action space.

        Args:
            config: None takes the run's own.
            calibration: as it shall be; None is none.
        """
        space = self.header.get("env") or {}
        if "action_low" not in space or "action_high" not in space:
            msg = f"{self.path}/run.json does not name the action space; the run cannot be replayed"
            raise TraceError(msg)
        chosen = self.config if config is None else config
        # A probe's values are in the evidence, its input is not: the file would do nothing here.
        metrics = chosen.metrics.model_copy(update={"safe": None})
        return Monitor(
            chosen.model_copy(update={"metrics": metrics}),
            action_low=space["action_low"],
            action_high=space["action_high"],
            calibration=calibration,
        )
