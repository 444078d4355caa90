"""Sinks: observers chosen by name, entry point or ``module:Class``.

A sink is made by a callable from the run's folder to an :class:`monitor.rollout.Observer`; if it
has ``close()``, it is called when the run ends. Other packages offer theirs in the entry-point
group ``vlawatch.sinks``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, final

from monitor.errors import ConfigError, MonitorError
from monitor.plugins import resolve
from monitor.rollout.records import EpisodeResult, EpisodeStart, Observer, RunStart, StepRecord

__all__ = ["GROUP", "SINKS", "Sink", "load_sinks"]

log = logging.getLogger(__name__)

GROUP: Final = "vlawatch.sinks"

_HERE: Final = "monitor.rollout.recorders"
SINKS: Final[Mapping[str, str]] = {
    "hidden": f"{_HERE}.hidden:HiddenRecorder",
    "logits": f"{_HERE}.logits:LogitsRecorder",
    "video": f"{_HERE}.video:VideoRecorder",
}
"""Sinks that come with vlawatch."""


@final
class Sink:
    """Guard around an observer: after an exception it is dropped, and the run goes on.

    Args:
        name: name of the sink, for the log.
        observer: the guarded observer.
    """

    def __init__(self, name: str, observer: Observer) -> None:
        self._name = name
        self._observer: Observer | None = observer

    def on_run(self, start: RunStart) -> None:
        """Pass on to an observer with ``on_run``."""
        if callable(method := getattr(self._observer, "on_run", None)):
            self._call("at the start of the run", method, start)

    def on_start(self, start: EpisodeStart) -> None:
        """Pass on."""
        if self._observer is not None:
            self._call(f"at the start of episode {start.episode}", self._observer.on_start, start)

    def on_step(self, record: StepRecord) -> None:
        """Pass on."""
        if self._observer is not None:
            self._call(f"at step {record.step}", self._observer.on_step, record)

    def on_end(self, result: EpisodeResult) -> None:
        """Pass on."""
        if self._observer is not None:
            self._call(f"at the end of episode {result.episode}", self._observer.on_end, result)

    def close(self) -> None:
        """Close an observer with ``close``."""
        if callable(method := getattr(self._observer, "close", None)):
            self._call("on closing", method)

    def _call(self, when: str, method: Callable[..., Any], *arguments: Any) -> None:
        try:
            method(*arguments)
        except Exception as error:
            self._observer = None
            text = f"{type(error).__name__}: {error}"
            log.error(  # noqa: TRY400  the traceback is for --verbose
                "sink %s failed %s: %s; the run goes on without it", self._name, when, text
            )
            log.debug("traceback of sink %s", self._name, exc_info=error)


def load_sinks(names: Sequence[str], folder: Path, stack: ExitStack) -> list[Observer]:
    """Make sinks.

    Args:
        names: names of :data:`SINKS`, names of entry points, or ``module:Class``; duplicates are
            made once.
        folder: folder of the run, in which a sink may write files of its own.
        stack: closes the sinks.

    Raises:
        ConfigError: if a name is unknown, or a sink cannot be imported or made.
    """
    sinks: list[Observer] = []
    for name in dict.fromkeys(names):
        try:
            sink = Sink(name, resolve("sink", name, GROUP, SINKS)(folder))
        except MonitorError:
            raise
        except Exception as error:
            msg = f"sink {name!r} cannot be made: {type(error).__name__}: {error}"
            raise ConfigError(msg) from error
        stack.callback(sink.close)
        sinks.append(sink)
    return sinks
