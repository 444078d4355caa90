"""The run folder of a proxy: the episodes of all its clients in one trace."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np

from monitor.pipeline import Monitor
from monitor.proxy.client_env import ClientEnv, UpstreamPolicy
from monitor.rollout.header import run_header
from monitor.rollout.loop import NO_SUCCESS, run_episode
from monitor.rollout.recorders.trace import TraceRecorder
from monitor.rollout.records import EpisodeResult, EpisodeSpec, EpisodeStart, StepRecord
from monitor.rollout.views.plain import verdict
from monitor.trace import RunFolder, RunWriter, TraceError, check_free

__all__ = ["NO_VERDICT", "ProxyRun"]

log = logging.getLogger(__name__)

NO_VERDICT = (
    "no verdict: the client sent no 'vlawatch/success', so whether the task was solved is unknown"
)


@final
class ProxyRun:
    """Runs the clients' episodes through the loop and writes their trace.

    Args:
        out: folder to write to; None writes nothing.
        env_name: name of the environment in the header.
        url: URL of the policy server.
        summarise: makes ``summary.json``.

    Raises:
        TraceError: if the folder holds a run already.
    """

    def __init__(
        self,
        out: Path | None,
        *,
        env_name: str,
        url: str,
        summarise: Callable[[RunFolder], Mapping[str, Any]] | None = None,
    ) -> None:
        if out is not None:
            check_free(out)
        self._out, self._env_name, self._url = out, env_name, url
        self._summarise = summarise
        self._lock = threading.RLock()
        self._writer: RunWriter | None = None
        self._kind: Any = None
        self.episodes = 0
        """Number of episodes that have begun."""

    def watch(self, env: ClientEnv, monitor: Monitor, served: str) -> EpisodeResult:
        """Run one episode to its end.

        Raises:
            TraceError: if its robot or policy differs from those of earlier episodes: a folder
                holds one kind of run.
        """
        with self._lock:
            self._require_same_kind(env, monitor, served)
            number, self.episodes = self.episodes, self.episodes + 1
            attempt = 1 if self._writer is None else self._writer.begin(number)
        return run_episode(
            env,
            UpstreamPolicy(env, served),
            monitor,
            (_Recorder(self._writer, self._lock, acts=env.acts),),
            spec=EpisodeSpec(scene=number),
            episode=number,
            attempt=attempt,
        )

    def close(self) -> Mapping[str, Any] | None:
        """Write the summary and release the folder; return the summary, if there is one."""
        with self._lock:
            if self._writer is None:
                return None
            summary = None
            if self._summarise is not None:
                summary = self._summarise(RunFolder(self._writer.path))
                self._writer.write_summary(summary)
            self._writer.close()
            self._writer = None
            return summary

    def _require_same_kind(self, env: ClientEnv, monitor: Monitor, served: str) -> None:
        kind = (served, env.info)
        if self._kind is None:
            self._kind = kind
            if self._out is not None:
                header = run_header(
                    env_name=self._env_name,
                    env=env,
                    policy_name=served,
                    monitor=monitor,
                    specs=(),
                    policy_kwargs={"url": self._url},
                )
                self._writer = RunWriter(self._out, header)
        elif kind != self._kind:
            msg = (
                f"{self._out or 'this run'} holds episodes of {self._kind}, this client has "
                f"{kind}: start a separate proxy for it"
            )
            raise TraceError(msg)


class _Recorder:
    """Writes the trace and logs, one client at a time."""

    def __init__(self, writer: RunWriter | None, lock: threading.RLock, *, acts: bool) -> None:
        self._recorder = None if writer is None else TraceRecorder(writer)
        self._lock = lock
        self._acts = acts
        self._episode = 0

    def on_start(self, start: EpisodeStart) -> None:
        """Begin an episode."""
        self._episode = start.episode
        log.info('episode %d: "%s"', start.episode, start.instruction)
        if self._recorder is not None:
            self._recorder.on_start(start)

    def on_step(self, record: StepRecord) -> None:
        """Write a step; a proxy that only watches has sent the policy's own action."""
        for alert in record.decision.alerts:
            log.info("episode %d step %d: %s", self._episode, record.step, alert.message)
        if not self._acts and record.sent is not None:
            record = replace(record, sent=np.asarray(record.inputs.action, dtype=np.float64))
        if self._recorder is not None:
            with self._lock:
                self._recorder.on_step(record)

    def on_end(self, result: EpisodeResult) -> None:
        """Write the result."""
        message = result.message.replace(NO_SUCCESS, NO_VERDICT)
        result = replace(result, message=message)
        log.info("episode %d: %s", result.episode, verdict(result))
        if self._recorder is not None:
            with self._lock:
                self._recorder.on_end(result)
