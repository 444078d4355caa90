"""Plain-text progress, one line per event: for pipes, logs and CI."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from monitor.rollout.records import EpisodeResult, EpisodeStart, RunStart, StepRecord
from monitor.rollout.views.progress import Progress

__all__ = ["PlainView", "clock", "verdict"]


@final
class PlainView:
    """Reports when an episode begins, when an alert is raised and how an episode ended.

    Args:
        write: called with one line, without its newline.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._progress = Progress()
        self._mark = ""

    def on_run(self, start: RunStart) -> None:
        """Report the episodes that are already done."""
        self._progress.on_run(start)
        if start.done:
            self._write(f"resuming: {len(start.done)} of {len(start.specs)} episodes are finished")

    def on_start(self, start: EpisodeStart) -> None:
        """Report which episode begins."""
        self._progress.on_start(start)
        self._mark = f"[{start.episode + 1}/{self._progress.total}] scene {start.spec.scene}"
        options = "".join(f", {key}={value}" for key, value in start.spec.options.items())
        retry = f", attempt {start.attempt}" if start.attempt > 1 else ""
        self._write(f'{self._mark}: "{start.instruction}"{options}{retry}')

    def on_step(self, record: StepRecord) -> None:
        """Report the alerts of this step."""
        self._progress.on_step(record)
        for alert in record.decision.alerts:
            message = alert.message.removeprefix(f"step {alert.step}: ")
            code = "" if message.startswith(alert.code) else f"{alert.code}: "
            self._write(f"{self._mark} step {alert.step}: {code}{message}")

    def on_end(self, result: EpisodeResult) -> None:
        """Report how the episode ended and how long the rest will take."""
        self._progress.on_end(result)
        left = self._progress.seconds_left()
        rest = f", about {clock(left)} left" if left else ""
        self._write(f"{self._mark}: {verdict(result)}, {result.wall_s:.1f} s{rest}")


def verdict(result: EpisodeResult) -> str:
    """Describe the result of an episode in one phrase."""
    parts = [f"{result.outcome} after {result.steps} steps"]
    if result.first_success is not None:
        parts.append(f"first success at step {result.first_success}")
    if result.success_at_reset:
        parts.append("already solved at reset")
    peak = "unknown" if result.peak_score is None else f"{result.peak_score:.2f}"
    parts.append(f"peak score {peak}")
    alert = "no alert" if result.first_alert is None else f"first alert {result.first_alert}"
    parts.append(alert)
    if result.message:
        parts.append(result.message)
    return ", ".join(parts)


def clock(seconds: float) -> str:
    """Format seconds as minutes and seconds.

    Example:
        >>> clock(75.4)
        '1:15'
    """
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes = f"{rest // 60}:{rest % 60:02d}"
    return minutes if hours == 0 else f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
