"""Observers of other packages, by entry-point group ``vlawatch.sinks``.

An entry point names a callable from the run's folder to an :class:`monitor.rollout.Observer`;
where that has ``close()``, it is called when the run ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, final

from monitor.errors import ConfigError, unknown_name
from monitor.rollout.records import EpisodeResult, EpisodeStart, Observer, RunStart, StepRecord

__all__ = ["GROUP", "Sink", "load_sinks"]

log = logging.getLogger(__name__)

GROUP: Final = "vlawatch.sinks"


@final
class Sink:
    """Foreign code beside a run: when it raises, it is left out from then on, and the run goes on.

    Args:
        name: of the entry point.
        observer: what it made.
    """

    def __init__(self, name: str, observer: Observer) -> None:
        self._name = name
        self._observer: Observer | None = observer

    def on_run(self, plan: RunStart) -> None:
        """Pass on, where it wants to know the whole run."""
        if callable(tell := getattr(self._observer, "on_run", None)):
            self._tell(tell, plan)

    def on_start(self, start: EpisodeStart) -> None:
        """Pass on."""
        if self._observer is not None:
            self._tell(self._observer.on_start, start)

    def on_step(self, record: StepRecord) -> None:
        """Pass on."""
        if self._observer is not None:
            self._tell(self._observer.on_step, record)

    def on_end(self, result: EpisodeResult) -> None:
        """Pass on."""
        if self._observer is not None:
            self._tell(self._observer.on_end, result)

    def close(self) -> None:
        """Let it finish what it writes."""
        if callable(end := getattr(self._observer, "close", None)):
            self._tell(end)

    def _tell(self, method: Callable[..., Any], *given: Any) -> None:
        try:
            method(*given)
        except Exception:
            self._observer = None
            log.exception("sink %s failed; the run goes on without it", self._name)


def load_sinks(names: Sequence[str], folder: Path, stack: ExitStack) -> list[Observer]:
    """Make the sinks of the given entry-point names.

    Args:
        names: of entry points, each once.
        folder: of the run; a sink may write beside the trace, or not.
        stack: closes them.

    Raises:
        ConfigError: no installed package offers such a name, or it cannot be made.
    """
    found = {one.name: one for one in entry_points(group=GROUP)} if names else {}
    sinks: list[Observer] = []
    for name in dict.fromkeys(names):
        if name not in found:
            raise ConfigError(unknown_name("sink", name, found))
        try:
            sink = Sink(name, found[name].load()(folder))
        except Exception as error:
            msg = f"sink {name!r} ({found[name].value}) cannot be made: {error!r}"
            raise ConfigError(msg) from error
        stack.callback(sink.close)
        sinks.append(sink)
    return sinks
