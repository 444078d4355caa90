"""The SimplerEnv double, importable while a module of tests runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SIZE = (48, 64)
collect_ignore_glob = ["double_*.py", "simpler_double.py"]


@pytest.fixture(scope="session")
def _installed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        from simpler_double import modules

        for name, module in modules().items():
            patch.setitem(sys.modules, name, module)
        yield


@pytest.fixture(scope="session")
def facts(_installed: None) -> Any:
    """What scripts/record_simpler.py read from the real SimplerEnv."""
    from double_base import FACTS

    return FACTS


@pytest.fixture(scope="session")
def simpler(_installed: None) -> Callable[..., Any]:
    """Makes an environment over the double, with a small picture."""
    from envs.simpler.env import SimplerTaskEnv

    def make(task: str, **given: Any) -> Any:
        return SimplerTaskEnv(task, **{"image_size": SIZE, **given})

    return make


@pytest.fixture
def missing(_installed: None) -> Iterator[set[str]]:
    """Models whose files the double lacks; to be filled by a test."""
    from double_base import MISSING

    yield MISSING
    MISSING.clear()
