"""A run on disk: four files that survive a kill at any byte.

``run.json`` (the setup), ``steps.jsonl`` (one line per step), ``episodes.jsonl`` (one line per
finished episode) and ``summary.json``. A line counts once its newline is on disk; a kill may leave
a partial line at the end, so readers stop before it and a resumed writer removes it.

An episode that was killed keeps its steps; running it again raises ``attempt``, and readers use
the last attempt of every episode, so that nothing is counted twice.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Any, Final

import msgspec

from monitor.errors import MonitorError
from monitor.jsonable import dumps, encode, jsonable
from monitor.recorded import upgrade_header, upgrade_step

__all__ = [
    "SCHEMA",
    "RunFolder",
    "RunWriter",
    "TraceError",
    "check_free",
    "check_same_setup",
    "check_writable",
    "read_lines",
]

SCHEMA: Final = 2
"""Version of the layout, raised when a reader of the previous one would misread the files."""

SAME_ON_RESUME: Final = ("env", "policy", "monitor", "calibration", "thresholds", "seed")
"""Header keys that must be equal in both parts of a resumed run, so that its numbers mix."""

Record = dict[str, Any]


class TraceError(MonitorError, ValueError):
    """A run folder cannot be read or continued."""


def read_lines(path: Path) -> Iterator[Record]:
    """Yield the complete lines of a JSON Lines file; a partial line at the end is left out.

    Raises:
        TraceError: if another line cannot be read, which a kill does not explain.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                record = _decode(line)
            except ValueError as error:
                msg = f"{path}, line {number} is damaged ({error}); delete that line to continue"
                raise TraceError(msg) from error
            if not isinstance(record, dict):
                msg = f"{path}, line {number} holds {type(record).__name__}, expected an object"
                raise TraceError(msg)
            yield record


def _decode(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:  # half of a surrogate pair, which schema 1 could write
        return json.loads(line)


class RunFolder:
    """Reader of a run, finished or not, even while it is being written.

    Runs of earlier versions are returned in today's form (see :mod:`monitor.recorded`).

    Args:
        path: folder of the run.

    Raises:
        TraceError: if there is no run in that folder.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if not any((self.path / name).exists() for name in ("run.json", "steps.jsonl")):
            msg = f"no run in {self.path}: it holds neither run.json nor steps.jsonl"
            raise TraceError(msg)

    @property
    def header(self) -> Record:
        """Content of ``run.json``, in today's form."""
        return upgrade_header(_read_json(self.path / "run.json"))

    @property
    def summary(self) -> Record | None:
        """Content of ``summary.json``, or None if it does not exist yet."""
        path = self.path / "summary.json"
        return _read_json(path) if path.exists() else None

    def episodes(self) -> list[Record]:
        """Return the finished episodes in order, the last attempt of each."""
        last: dict[int, Record] = {}
        for record in read_lines(self.path / "episodes.jsonl"):
            last[record["episode"]] = record
        return [last[episode] for episode in sorted(last)]

    def steps(self) -> dict[int, list[Record]]:
        """Return the steps by episode number, finished or not, of the last attempt only."""
        found: dict[int, list[Record]] = {}
        for record in read_lines(self.path / "steps.jsonl"):
            kept = found.setdefault(record["episode"], [])
            if kept and record["attempt"] > kept[-1]["attempt"]:
                kept.clear()
            if not kept or record["attempt"] == kept[-1]["attempt"]:
                kept.append(upgrade_step(record))
        return dict(sorted(found.items()))

    def finished(self) -> dict[int, Record]:
        """Return the episodes that need not run again: their line and all their steps exist."""
        steps = self.steps()
        return {
            record["episode"]: record
            for record in self.episodes()
            if _is_complete(record, steps.get(record["episode"], []))
        }


def _is_complete(episode: Record, steps: Sequence[Record]) -> bool:
    """Return whether all steps of the finished episode are on disk."""
    same_attempt = not steps or steps[-1]["attempt"] == episode["attempt"]
    return bool(same_attempt and len(steps) == episode["steps"])


def _read_json(path: Path) -> Record:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        msg = f"{path} is missing"
        raise TraceError(msg) from error
    except ValueError as error:
        msg = f"{path} is damaged: {error}"
        raise TraceError(msg) from error
    if not isinstance(content, dict):
        msg = f"{path} holds {type(content).__name__}, expected an object"
        raise TraceError(msg)
    return content


class RunWriter:
    """Writer of a run; every line has been handed to the system when the call returns.

    Args:
        path: folder of the run, created if needed.
        header: content of ``run.json`` (see :data:`SAME_ON_RESUME`); ``schema`` is added.
        resume: whether to continue a run in that folder instead of raising.

    Raises:
        TraceError: if the folder already holds a run and ``resume`` is false, if another process
            is writing to it, or if the run there was made with another configuration.
    """

    def __init__(
        self, path: Path | str, header: Mapping[str, Any], *, resume: bool = False
    ) -> None:
        self.path = Path(path)
        content: Record = jsonable({"schema": SCHEMA, **header})
        present = (self.path / "run.json").exists()
        if not resume:
            check_free(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._steps = (self.path / "steps.jsonl").open("ab", buffering=0)
        try:
            _lock(self._steps, self.path)
            if present:
                content = _joined(RunFolder(self.path).header, content, self.path)
            _cut_partial_line(self.path / "steps.jsonl")
            _cut_partial_line(self.path / "episodes.jsonl")
            self._episodes = (self.path / "episodes.jsonl").open("ab", buffering=0)
            _write_json(self.path / "run.json", content)
            run = RunFolder(self.path)
            self.finished = run.finished()
            self._attempts: dict[int, int] = {
                number: steps[-1]["attempt"] for number, steps in run.steps().items()
            }
            for record in run.episodes():
                number = record["episode"]
                self._attempts[number] = max(self._attempts.get(number, 0), record["attempt"])
        except BaseException:
            self._steps.close()
            raise

    def begin(self, episode: int) -> int:
        """Begin an attempt at an episode and return its number, from 1."""
        self._attempts[episode] = self._attempts.get(episode, 0) + 1
        return self._attempts[episode]

    def write_step(self, record: Mapping[str, Any]) -> None:
        """Append one step, a mapping with at least ``episode``, ``attempt`` and ``step``."""
        _append(self._steps, record)

    def write_episode(self, record: Mapping[str, Any]) -> None:
        """Append one finished episode after syncing its steps to disk."""
        os.fsync(self._steps.fileno())
        _append(self._episodes, record)
        os.fsync(self._episodes.fileno())

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write ``summary.json`` atomically."""
        _write_json(self.path / "summary.json", summary)

    def close(self) -> None:
        """Close the files and release the folder."""
        self._episodes.close()
        self._steps.close()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def check_free(path: Path | str) -> None:
    """Check that a new run can be written to a folder, before anything slow is started.

    Raises:
        TraceError: if it holds a run already, or is not writable.
    """
    check_writable(path)
    if (Path(path) / "run.json").exists():
        msg = f"{path} already holds a run; pass --resume to continue it, or another --out"
        raise TraceError(msg)


def check_writable(path: Path | str) -> None:
    """Check that a folder is writable or can be created; nothing is left behind.

    Raises:
        TraceError: if not; says why.
    """
    try:
        parent = Path(path).absolute()
        while not parent.exists():
            parent = parent.parent
        with TemporaryFile(dir=parent):
            pass
    except OSError as error:
        msg = f"cannot write to {path}: {error.strerror}: {parent}; choose another --out"
        raise TraceError(msg) from error


def _append(file: IO[bytes], record: Mapping[str, Any]) -> None:
    line = memoryview(encode(record) + b"\n")
    try:
        while line:  # a raw write may take only a part
            line = line[file.write(line) :]
    except OSError as error:  # such as a full disk: the system does not say which file it was
        raise OSError(error.errno, error.strerror, file.name) from error


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a file atomically: a reader sees the old content or the new one."""
    draft = path.with_name(path.name + ".part")
    with draft.open("w", encoding="utf-8") as file:
        file.write(dumps(content, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _cut_partial_line(path: Path) -> None:
    """Truncate a file after its last newline."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        keep = end
        while keep > 0:
            start = max(0, keep - 65536)
            file.seek(start)
            newline = file.read(keep - start).rfind(b"\n")
            if newline >= 0:
                keep = start + newline + 1
                break
            keep = start
        if keep != end:
            file.truncate(keep)


def _joined(old: Record, new: Record, path: Path) -> Record:
    """Return the header of a resumed run: the old one, with the longer list of episodes."""
    if old.get("schema") != SCHEMA:
        msg = f"{path} has schema {old.get('schema')!r}, this version writes {SCHEMA}; use --out"
        raise TraceError(msg)
    key = _differing(old, new)
    if key is not None:
        msg = (
            f"{path} was run with another {key}: {_difference(old.get(key), new.get(key))}; "
            f"repeat the first run's options, or choose another --out"
        )
        raise TraceError(msg)
    before, now = old.get("episodes") or [], new.get("episodes") or []
    shared = min(len(before), len(now))
    if before[:shared] != now[:shared]:
        msg = f"{path} was run over other scenes; a resumed run may only append scenes"
        raise TraceError(msg)
    return {**old, "episodes": max(before, now, key=len)}


def check_same_setup(first: RunFolder, other: RunFolder) -> None:
    """Check that the episodes of two runs can be counted together.

    Raises:
        TraceError: if their environment, policy, monitor, calibration or seed differ.
    """
    old, new = first.header, other.header
    key = _differing(old, new)
    if key is not None:
        msg = (
            f"{first.path} and {other.path} were run with another {key}: "
            f"{_difference(old.get(key), new.get(key))}; their episodes do not mix"
        )
        raise TraceError(msg)


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Return the first key that keeps the numbers of two runs from mixing, or None."""
    return next((key for key in SAME_ON_RESUME if old.get(key) != new.get(key)), None)


def _difference(old: Any, new: Any, name: str = "") -> str:
    """Return the first difference of two JSON values as text."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                return _difference(old.get(key), new.get(key), f"{name}.{key}" if name else key)
    there, now = json.dumps(old)[:60], json.dumps(new)[:60]
    return f"{name + ': ' if name else ''}{there} there, {now} now"


def _lock(file: IO[bytes], path: Path) -> None:
    """Lock out a second writer; the system releases the lock when the process ends."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        msg = f"another process is writing to {path}; wait for it, or choose another --out"
        raise TraceError(msg) from error
