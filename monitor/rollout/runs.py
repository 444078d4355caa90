"""Many episodes: one after the other, each on disk when it ends, and resumable."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.pipeline import Monitor
from monitor.rollout.loop import run_episode
from monitor.rollout.recorders.trace import TraceRecorder
from monitor.rollout.records import (
    EpisodeResult,
    EpisodeSpec,
    Observer,
    RunObserver,
    RunStart,
)
from monitor.trace import RunFolder, RunWriter
from policies import Policy

__all__ = ["RunResult", "run_episodes"]

log = logging.getLogger(__name__)

Summarise = Callable[[RunFolder], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What came of a sweep.

    Attributes:
        results: of every finished episode, in order, also those of an earlier process.
        interrupted: Ctrl-C ended it early.
        summary: what ``summarise`` made of the run; None without a folder.
        folder: where the run lies, if it was written.
    """

    results: tuple[EpisodeResult, ...]
    interrupted: bool
    summary: Mapping[str, Any] | None = None
    folder: Path | None = None

    @property
    def errors(self) -> int:
        """Episodes that have no verdict because something broke."""
        return sum(result.outcome == "error" for result in self.results)


def run_episodes(
    env: Any,
    policy: Policy,
    monitor: Monitor,
    specs: Sequence[EpisodeSpec],
    *,
    out: Path | str | None = None,
    header: Mapping[str, Any] | None = None,
    observers: Sequence[Observer] = (),
    resume: bool = False,
    retry_errors: bool = False,
    remake: Callable[[], Any] | None = None,
    summarise: Summarise | None = None,
    max_steps: int | None = None,
) -> RunResult:
    """Run episodes one after the other.

    Args:
        env: environment for all of them.
        policy: asked at every step.
        monitor: reset for every episode.
        specs: what to run.
        out: folder to write to; None writes nothing.
        header: content of ``run.json``, see :func:`monitor.rollout.header.run_header`.
        observers: told of every episode; one with ``on_run`` is told of the whole first.
        resume: leave out what the folder already holds as finished.
        retry_errors: on resume, run episodes again that ended in an error.
        remake: makes a fresh environment for the episode after one that ended in an error; the old
            one, also the caller's, is closed. None keeps the old one, and so does one that fails: the
            next episode is then tried all the same.
        summarise: makes ``summary.json``; called at the end, also after Ctrl-C.
        max_steps: limit of steps an episode, on top of the environment's own.

    Returns:
        The results so far; Ctrl-C ends the sweep, not the process.

    Raises:
        TraceError: if ``out`` cannot be written or continued.
    """
    done: dict[int, EpisodeResult] = {}
    given = env
    interrupted = False
    summary = None
    with ExitStack() as stack:
        writer = None
        if out is not None:
            writer = stack.enter_context(RunWriter(out, header or {}, resume=resume))
            done = {
                number: EpisodeResult.from_json(record)
                for number, record in writer.finished.items()
                if number < len(specs) and not (retry_errors and record["outcome"] == "error")
            }
            observers = (TraceRecorder(writer), *observers)
        plan = RunStart(specs=specs, done=[done[number] for number in sorted(done)])
        for observer in observers:
            if isinstance(observer, RunObserver):
                observer.on_run(plan)
        broken = False
        try:
            for number, spec in enumerate(specs):
                if number in done:
                    continue
                if broken and remake is not None:
                    env = _fresh(env, remake)
                done[number] = run_episode(
                    env,
                    policy,
                    monitor,
                    observers,
                    spec=spec,
                    max_steps=max_steps,
                    episode=number,
                    attempt=1 if writer is None else writer.begin(number),
                )
                broken = done[number].outcome == "error"
        except KeyboardInterrupt:
            interrupted = True
            log.warning("interrupted; %d of %d episodes are finished", len(done), len(specs))
        finally:
            if env is not given:
                with suppress(Exception):
                    env.close()
        if writer is not None and summarise is not None:
            summary = summarise(RunFolder(writer.path))
            writer.write_summary(summary)
    return RunResult(
        results=tuple(done[number] for number in sorted(done)),
        interrupted=interrupted,
        summary=summary,
        folder=None if out is None else Path(out),
    )


def _fresh(env: Any, remake: Callable[[], Any]) -> Any:
    """A new environment for one that broke; the old one where there is no making another."""
    with suppress(Exception):
        env.close()
    try:
        return remake()
    except Exception as error:  # it may be back at the next episode; each says why it is not
        log.warning("the environment could not be made again: %s", error)
        return env
