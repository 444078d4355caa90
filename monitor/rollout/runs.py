"""Many episodes: one after the other, each on disk when it ends, and resumable."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, final

from monitor.pipeline import Monitor
from monitor.rollout.loop import run_episode
from monitor.rollout.recorders.trace import TraceRecorder
from monitor.rollout.records import EpisodeResult, EpisodeSpec, Observer, RunObserver, RunStart
from monitor.trace import RunFolder, RunWriter
from policies import Policy

__all__ = ["RunFiles", "RunResult", "run_episodes"]

log = logging.getLogger(__name__)

Summarise = Callable[[RunFolder], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFiles:
    """The folder that a run is written to.

    Attributes:
        folder: created if it does not exist.
        header: content of ``run.json``, see :func:`monitor.rollout.header.run_header`.
        resume: skip the episodes that the folder already holds as finished.
        retry_errors: run episodes, on resume, that ended in an error again.
        summarise: makes ``summary.json``; called at the end, also after Ctrl-C.
    """

    folder: Path | str
    header: Mapping[str, Any] = field(default_factory=dict)
    resume: bool = False
    retry_errors: bool = False
    summarise: Summarise | None = None

    def open(self) -> RunWriter:
        """Open the folder for writing."""
        return RunWriter(self.folder, self.header, resume=self.resume)

    def summarise_run(self, writer: RunWriter) -> Mapping[str, Any] | None:
        """Write ``summary.json`` and return it; None without ``summarise``."""
        if self.summarise is None:
            return None
        summary = self.summarise(RunFolder(writer.path))
        writer.write_summary(summary)
        return summary

    def finished(self, writer: RunWriter, count: int) -> dict[int, EpisodeResult]:
        """Return the results of an earlier process that need not be run again, by number."""
        return {
            number: EpisodeResult.from_json(record)
            for number, record in writer.finished.items()
            if number < count and not (self.retry_errors and record["outcome"] == "error")
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The outcome of a run.

    Attributes:
        results: every finished episode in order, including those of an earlier process.
        interrupted: Ctrl-C ended the run early.
        summary: content of ``summary.json``; None without files.
        folder: folder of the run; None without files.
    """

    results: tuple[EpisodeResult, ...]
    interrupted: bool
    summary: Mapping[str, Any] | None = None
    folder: Path | None = None

    @property
    def errors(self) -> int:
        """Number of episodes without a verdict because something broke."""
        return sum(result.outcome == "error" for result in self.results)


def run_episodes(
    env: Any,
    policy: Policy,
    monitor: Monitor,
    specs: Sequence[EpisodeSpec],
    *,
    files: RunFiles | None = None,
    observers: Sequence[Observer] = (),
    remake: Callable[[], Any] | None = None,
    max_steps: int | None = None,
) -> RunResult:
    """Run episodes one after the other.

    Args:
        env: environment for all of them.
        policy: called at every step.
        monitor: reset for every episode.
        specs: episodes to run.
        files: where to write the run; None writes nothing.
        observers: notified of every episode; one with ``on_run`` first learns of the whole run.
        remake: makes a fresh environment for the episode after one that ended in an error, and the
            old one is closed, even if it is the caller's. None keeps the old one, and so does a
            ``remake`` that fails: the next episode is then tried anyway.
        max_steps: step limit per episode, in addition to the environment's own.

    Returns:
        The results so far; Ctrl-C ends the run, not the process.

    Raises:
        TraceError: if the folder cannot be written or continued.
    """
    done: dict[int, EpisodeResult] = {}
    interrupted, summary = False, None
    with ExitStack() as stack:
        writer = None
        if files is not None:
            writer = stack.enter_context(files.open())
            done = files.finished(writer, len(specs))
            observers = (TraceRecorder(writer), *observers)
        _announce(observers, specs, done)
        renewable = _RenewableEnv(env, remake)
        try:
            for number, spec in enumerate(specs):
                if number not in done:
                    now = renewable.ready()
                    attempt = 1 if writer is None else writer.begin(number)
                    run = partial(run_episode, spec=spec, episode=number, attempt=attempt)
                    done[number] = run(now, policy, monitor, observers, max_steps=max_steps)
                    renewable.broken = done[number].outcome == "error"
        except KeyboardInterrupt:
            interrupted = True
            log.warning("interrupted; %d of %d episodes are finished", len(done), len(specs))
        finally:
            renewable.close()
        if writer is not None and files is not None:
            summary = files.summarise_run(writer)
    results = tuple(done[number] for number in sorted(done))
    folder = None if files is None else Path(files.folder)
    return RunResult(results=results, interrupted=interrupted, summary=summary, folder=folder)


def _announce(
    observers: Sequence[Observer], specs: Sequence[EpisodeSpec], done: Mapping[int, EpisodeResult]
) -> None:
    start = RunStart(specs=specs, done=[done[number] for number in sorted(done)])
    for observer in observers:
        if isinstance(observer, RunObserver):
            observer.on_run(start)


@final
class _RenewableEnv:
    """The caller's environment, or the one that replaced it after an error."""

    def __init__(self, env: Any, remake: Callable[[], Any] | None) -> None:
        self.broken = False
        """Whether the last episode ended in an error."""
        self._now = self._given = env
        self._remake = remake

    def ready(self) -> Any:
        """Return the environment for the next episode, a fresh one if the last one broke."""
        if self.broken and self._remake is not None:
            with suppress(Exception):
                self._now.close()
            try:
                self._now = self._remake()
            except Exception as error:  # it may work at the next episode; each says why not
                log.warning("the environment could not be made again: %s", error)
        return self._now

    def close(self) -> None:
        """Close the environment unless it is the caller's own."""
        if self._now is not self._given:
            with suppress(Exception):
                self._now.close()
