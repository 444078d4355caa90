"""Where the doubles are found, here and in the processes that hold them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from envs.host.hosted import HostedEnv


@pytest.fixture(autouse=True)
def _doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    )


@pytest.fixture
def host() -> Iterator[Callable[..., HostedEnv]]:
    """Makes hosted doubles by class name, and closes them in the end."""
    made: list[HostedEnv] = []

    def make(name: str, **given: Any) -> HostedEnv:
        made.append(HostedEnv(f"host_doubles:{name}", **given))
        return made[-1]

    yield make
    for env in made:
        env.close()


class Processes:
    """What the system says of processes."""

    @staticmethod
    def of_group(group: int) -> list[int]:
        """The living processes of a group; one that nobody has waited for yet is dead."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _, number = path.read_text().rpartition(")")[2].split()[:3]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(number) == group and state != "Z":
                found.append(int(path.parent.name))
        return found

    @staticmethod
    def until(true: Callable[[], bool], *, limit_s: float) -> bool:
        """Wait until something is true; whether it became so."""
        end = time.monotonic() + limit_s
        while not true():
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def gone(self, group: int, *, limit_s: float = 2.0) -> bool:
        """Whether nothing of a group is left, at the latest in some seconds."""
        return self.until(lambda: not self.of_group(group), limit_s=limit_s)


@pytest.fixture
def processes() -> Processes:
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc")
    return Processes()
