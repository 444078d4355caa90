"""Where the doubles are found, here and in the processes that hold them."""

from __future__ import annotations

import os
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
