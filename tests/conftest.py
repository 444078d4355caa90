"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

if (given := os.environ.get("VLAWATCH_SHARED")) and "MS_ASSET_DIR" not in os.environ:
    # ManiSkill reads it when it is imported, and one import serves all tests.
    os.environ["MS_ASSET_DIR"] = str(Path(given) / "assets" / "maniskill")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of the shared fixtures (golden models, assets), named by VLAWATCH_SHARED.

    Under CI a missing folder is a failure, so that nothing is silently untested.
    """
    given = os.environ.get("VLAWATCH_SHARED")
    if given and Path(given).is_dir():
        return Path(given)
    message = f"VLAWATCH_SHARED={given!r} is not a folder; set it to the folder that holds golden/"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt, also where a shell that started the tests in background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="module")
def _set_aside() -> None:
    """Spare garbage collections, of which ManiSkill does one per reset, what is there already."""
    gc.collect()
    gc.freeze()
