"""Measure this checkout and an older commit side by side, in one run, and print the ratios.

    python scripts/compare_commits.py [--old COMMIT] [--rounds N]

The older commit gets a git worktree in a temporary folder. Each version has a process of its own
with the same interpreter on the same processor, and they take turns measurement by measurement,
so that a busy machine is busy for both. Shown is the lower quartile of the rounds. On a shared
machine believe the ratios, not the times: the same code twice differs by up to a tenth.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
DRIVER = ROOT / "scripts" / "measure_commit.py"
BEFORE = "9885c5e"
"""The last commit before the house was rebuilt."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        what: what was measured.
        unit: unit of the times.
        aim: largest ratio of new to old; None where the aim is a time or there is none.
        aim_time: largest time of the new version.
    """

    what: str
    unit: str
    aim: float | None = None
    aim_time: float | None = None


CALLS = {
    "update": (80, Row("Monitor.update without logits", "µs", 1.0)),
    "update 256": (80, Row("Monitor.update, logits 7×256", "µs", 1.0)),
    "update 32064": (40, Row("Monitor.update, logits 7×32064", "µs", 1.0)),
    "vector": (10, Row("VectorMonitor.update, 1,024 robots, without logits", "µs", 0.5)),
    "line": (80, Row("line of steps.jsonl, logits 7×256", "µs", 0.1)),
}
STARTS = {
    "import": Row("import monitor", "s", 1.0),
    "start": Row("start with a numba cache (import, construct Monitor)", "s", 1.0),
}
FIRST = {
    "compile": Row("first start without a numba cache (construct, update)", "s", aim_time=8.0),
    "compile all": Row("the same, then logits and VectorMonitor", "s"),
}
COLD_STARTS = 2
PROCESSES = 4
"""Processes of a version one after the other, as one may have luck with its memory."""
Pair = tuple[float, float]


@dataclass(frozen=True)
class Version:
    """A version of the code and where numba keeps its functions."""

    tree: Path
    cache: Path

    def environment(self, cache: Path | None = None) -> dict[str, str]:
        """Return the environment of a process that imports this version."""
        return {
            **os.environ,
            "PYTHONPATH": str(self.tree),
            "NUMBA_CACHE_DIR": str(cache or self.cache),
            "OMP_NUM_THREADS": "1",
        }

    def start(self, *options: str, cache: Path | None = None) -> Mapping[str, float]:
        """Start a process and return its times in seconds."""
        command = [sys.executable, str(DRIVER), "start", *options]
        ended = subprocess.run(
            command,
            env=self.environment(cache),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # numba's notes that it compiles
            check=True,
            text=True,
        )
        times: dict[str, float] = json.loads(ended.stdout)
        return times


@contextmanager
def asking(version: Version) -> Iterator[Callable[[str], float]]:
    """Keep a process of a version that measures what it is asked."""
    process = subprocess.Popen(
        [sys.executable, str(DRIVER)],
        env=version.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    questions, answers = _pipes(process)

    def ask(question: str) -> float:
        questions.write(f"{question}\n")
        questions.flush()
        return float(answers.readline())

    try:
        yield ask
    finally:
        questions.close()
        process.wait()


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    if process.stdin is None or process.stdout is None:
        msg = "the process has no pipes"
        raise RuntimeError(msg)
    return process.stdin, process.stdout


@contextmanager
def worktree(commit: str, folder: Path) -> Iterator[Path]:
    """Check a commit out into a folder of its own."""
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(folder), commit], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def measure(old: Version, new: Version, rounds: int) -> Iterator[tuple[Row, list[Pair]]]:
    """Measure both versions in turn; the times of each row as (old, new) per round."""
    both = (old, new)
    for version in both:
        version.start()  # fills the cache
    found: dict[str, list[Pair]] = {name: [] for name in CALLS}
    for _ in range(PROCESSES):
        with ExitStack() as stack:
            ask_old, ask_new = (stack.enter_context(asking(version)) for version in both)
            for name, (calls, _) in CALLS.items():
                question = f"{name} {calls}"
                turns = range(max(1, rounds // PROCESSES))
                found[name].extend((ask_old(question), ask_new(question)) for _ in turns)
    for name, (_, row) in CALLS.items():
        yield row, found[name]
    starts = [[one.start("--cached") for one in both] for _ in range(max(4, rounds // 6))]
    for name, row in STARTS.items():
        yield row, [(before[name], now[name]) for before, now in starts]
    colds = []
    for number in range(COLD_STARTS):
        caches = [version.cache.with_name(f"{version.cache.name}-{number}") for version in both]
        colds.append([one.start(cache=cache) for one, cache in zip(both, caches, strict=True)])
    for name, row in FIRST.items():
        yield row, [(before[name], now[name]) for before, now in colds]


def line(row: Row, pairs: list[Pair]) -> str:
    """Format one row as Markdown."""
    old, new = (undisturbed(times) for times in zip(*pairs, strict=True))
    ratio = new / old
    if row.aim_time is not None:
        aim, met = f"{row.aim_time:g} {row.unit}", new <= row.aim_time
    else:
        aim, met = ("", True) if row.aim is None else (f"{row.aim:g}×", ratio <= row.aim)
    times = " | ".join(f"{time:.2f} {row.unit}" for time in (old, new))
    return f"| {row.what} | {times} | {ratio:.2f} | {aim} | {'' if met else '**missed**'} |"


def undisturbed(times: tuple[float, ...]) -> float:
    """Return the lower quartile: most of what a busy machine adds lies above it."""
    return sorted(times)[len(times) // 4]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--old", default=BEFORE, metavar="COMMIT", help="commit to compare with")
    parser.add_argument("--rounds", type=int, default=60, help="turns of each version")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the worktree is removed
    if hasattr(os, "sched_setaffinity"):  # both versions on one processor, as the others differ
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print("| what | old | new | new / old | aim | |")
    print("| --- | ---: | ---: | ---: | ---: | --- |", flush=True)
    with tempfile.TemporaryDirectory() as name, worktree(given.old, Path(name) / "old") as tree:
        old = Version(tree, Path(name) / "cache-old")
        new = Version(ROOT, Path(name) / "cache-new")
        for row, pairs in measure(old, new, given.rounds):
            print(line(row, pairs), flush=True)


if __name__ == "__main__":
    main()
