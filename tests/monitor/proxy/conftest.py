"""Servers and proxies that end with their test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest


@pytest.fixture
def wires() -> Iterator[Any]:
    pytest.importorskip("msgpack")
    pytest.importorskip("websockets")
    from tests.monitor.proxy.doubles import Wires

    with ExitStack() as stack:
        yield Wires(stack)
