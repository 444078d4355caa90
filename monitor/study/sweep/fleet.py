"""The processes of a sweep: one ``vlawatch run`` per part, some at the same time."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from monitor.errors import ConfigError
from monitor.jsonable import dumps
from monitor.parent_death import PARENT_PID
from monitor.rollout import read_specs
from monitor.study.sweep.config import Cell, SweepConfig, SweepPart
from monitor.study.sweep.status import SweepStatus, finished_episodes, read_status
from monitor.trace import TraceError

__all__ = ["FleetResult", "run_fleet"]

log = logging.getLogger(__name__)

POLL_S: Final = 1.0
RESTARTS: Final = 2
"""How often a part is started again after its process died without finishing an episode."""
_ENDED: Final = (0, 1)
"""Exit codes of a run that came to its end, the second with errors in it."""
_TAIL_LINES: Final = 3

Command = Callable[[Sequence[str]], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetResult:
    """What came of a sweep.

    Attributes:
        status: status of every cell.
        interrupted: Ctrl-C ended it early.
    """

    status: SweepStatus
    interrupted: bool

    @property
    def complete(self) -> bool:
        """Every planned episode has a verdict."""
        return self.status.finished == self.status.planned and not self.status.errors


@dataclass
class _Fleet:
    config: SweepConfig
    out: Path
    command: Command
    retry_errors: bool
    stopping: threading.Event = field(default_factory=threading.Event)
    running: dict[Path, subprocess.Popen[bytes]] = field(default_factory=dict)
    problems: dict[Path, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, part: SweepPart) -> None:
        """Run a part to its end; begin it again if its process dies on the way."""
        tries = RESTARTS
        while not self.stopping.is_set():
            before = len(finished_episodes(self.out / part.folder))
            code = self._once(part)
            if code in _ENDED or self.stopping.is_set():
                return
            if code > 0:
                self._give_up(part, f"exit code {code}")
                return
            if len(finished_episodes(self.out / part.folder)) == before:
                tries -= 1
            else:
                tries = RESTARTS
            name = signal.Signals(-code).name
            if tries < 0:
                self._give_up(part, f"killed by {name} again and again")
                return
            log.warning("%s: its process was killed by %s; it goes on", part.folder, name)

    def _give_up(self, part: SweepPart, what: str) -> None:
        lines = _log_file(self.out, part).read_text(encoding="utf-8", errors="replace").splitlines()
        said = " / ".join(lines[-_TAIL_LINES:])
        self.problems[part.folder] = f"{what}: {said}" if said else what
        log.error("%s: %s", part.folder, self.problems[part.folder])

    def _once(self, part: SweepPart) -> int:
        """Run its process once; the exit code, negative for a signal."""
        path = _log_file(self.out, part)
        path.parent.mkdir(parents=True, exist_ok=True)
        arguments = part.arguments(self.config, self.out)
        if self.retry_errors:
            arguments.append("--retry-errors")
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
            PARENT_PID: str(os.getpid()),
        }
        with path.open("ab") as file, self.lock:
            if self.stopping.is_set():
                return 0
            process = subprocess.Popen(
                self.command(arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                env=environment,
                # Ctrl-C reaches the sweep alone, which then ends its processes one by one.
                start_new_session=True,
            )
            self.running[part.folder] = process
        code = process.wait()
        with self.lock:
            del self.running[part.folder]
        return code

    def stop(self) -> None:
        """End what runs, as Ctrl-C would: finished episodes are kept, summaries written."""
        self.stopping.set()
        with self.lock:
            for process in self.running.values():
                process.send_signal(signal.SIGTERM)


def run_fleet(
    config: SweepConfig,
    out: Path,
    *,
    jobs: int = 1,
    resume: bool = False,
    retry_errors: bool = False,
    watch: Callable[[SweepStatus], None] | None = None,
    command: Command | None = None,
) -> FleetResult:
    """Run a sweep, or what is missing of it.

    Args:
        config: configuration of the sweep.
        out: its folder; every part is a run folder below it, readable at any moment.
        jobs: processes at the same time.
        resume: go on with the sweep in ``out``.
        retry_errors: run episodes that ended in an error again, on resume.
        watch: called with the state about once a second.
        command: makes the command line of a process from the arguments of ``vlawatch``; None runs
            this interpreter's.

    Raises:
        ConfigError: fewer than one job.
        TraceError: ``out`` holds a sweep and ``resume`` is false, or another sweep.
    """
    if jobs < 1:
        msg = f"jobs {jobs}: at least 1"
        raise ConfigError(msg)
    _begin(config, out, resume=resume)
    missing = [
        part for part in _parts(config) if not _is_done(part, out, retry_errors=retry_errors)
    ]
    fleet = _Fleet(config, out, command or _own, retry_errors)
    interrupted = False
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="part") as pool:
        waiting: set[Future[None]] = {pool.submit(fleet.run, part) for part in missing}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=POLL_S, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                status = read_status(config, out, fleet.problems)
                if done:
                    _write(out, status)
                if watch is not None:
                    watch(status)
        except KeyboardInterrupt:
            interrupted = True
            log.warning("interrupted; the running parts write what they have")
        finally:
            fleet.stop()
            pool.shutdown(wait=True, cancel_futures=True)
    status = read_status(config, out, fleet.problems)
    _write(out, status)
    return FleetResult(status=status, interrupted=interrupted)


def _own(arguments: Sequence[str]) -> Sequence[str]:
    return [sys.executable, "-m", "monitor.cli.main", *arguments]


def _parts(config: SweepConfig) -> Iterable[SweepPart]:
    return [part for cell in config.cells() for part in cell.parts(config.part_episodes)]


def _is_done(part: SweepPart, out: Path, *, retry_errors: bool) -> bool:
    episodes = finished_episodes(out / part.folder).values()
    done = [one for one in episodes if not (retry_errors and one["outcome"] == "error")]
    return len(done) == part.episodes


def _log_file(out: Path, part: SweepPart) -> Path:
    """Return a path next to the run folder; ``part-*`` matches run folders alone, not it."""
    return out / part.folder.with_name(f"log-{part.number:03d}.txt")


def _begin(config: SweepConfig, out: Path, *, resume: bool) -> None:
    """Write the configuration to the folder, or check that it is the one already there."""
    path = out / "plan.json"
    content: Mapping[str, Any] = config.model_dump(mode="json")
    if path.exists():
        if not resume:
            msg = f"{out} already holds a sweep; pass --resume to continue it, or another --out"
            raise TraceError(msg)
        before = SweepConfig.model_validate(json.loads(path.read_text(encoding="utf-8")))
        for key in ("part_episodes", "monitor", "calibration", "watch_only", "recovery"):
            if getattr(before, key) != getattr(config, key):
                msg = f"{out} holds a sweep with another {key}; choose another --out"
                raise TraceError(msg)
        _check_scenes(before, config, out)
    out.mkdir(parents=True, exist_ok=True)
    path.write_text(dumps(content, indent=2) + "\n", encoding="utf-8")


def _check_scenes(before: SweepConfig, config: SweepConfig, out: Path) -> None:
    """Refuse other scenes for what has been run: its parts would hold episodes of both plans."""
    had = {cell.folder: _scenes(cell) for cell in before.cells()}
    for cell in config.cells():
        done = had.get(cell.folder, [])
        if _scenes(cell)[: len(done)] != done:
            msg = (
                f"{out / cell.folder} was begun with other scenes; a resumed sweep may only "
                "append scenes: choose another --out, or another label"
            )
            raise TraceError(msg)


def _scenes(cell: Cell) -> list[int]:
    return [spec.scene for spec in read_specs(cell.scenes)]


def _write(out: Path, status: SweepStatus) -> None:
    draft = out / "sweep.json.part"
    draft.write_text(dumps(status.to_json(), indent=2) + "\n", encoding="utf-8")
    draft.replace(out / "sweep.json")
