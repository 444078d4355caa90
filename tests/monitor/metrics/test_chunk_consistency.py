from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from monitor import Monitor, Step
from monitor.metrics.chunk_consistency import chunk_inconsistency


@pytest.mark.parametrize("drop", [0, 1, 3])
def test_chunks_that_agree_where_they_overlap_are_consistent(drop: int) -> None:
    chunk = np.random.default_rng(1).uniform(size=(9, 7))
    last, now = chunk[: 8 - drop], chunk[1:]
    assert chunk_inconsistency(last, now) == 0.0
    assert chunk_inconsistency(last, now + 0.1) == pytest.approx(0.1)
    assert chunk_inconsistency(chunk[:1], now) is None


def test_robots_together_give_what_each_gives_alone() -> None:
    last, now = np.random.default_rng(2).uniform(size=(2, 5, 9, 7))
    together = chunk_inconsistency(last, now)
    assert together is not None
    assert together.tolist() == [chunk_inconsistency(*each) for each in zip(last, now, strict=True)]


def test_a_step_without_a_chunk_breaks_the_comparison(make_monitor: Callable[..., Monitor]) -> None:
    monitor = make_monitor()
    chunk = np.zeros((4, 7))
    got = [
        monitor.update(Step(action=np.zeros(7), chunk=given)).metrics["CHUNK"]
        for given in (chunk, chunk, None, chunk, chunk)
    ]
    assert got == [None, 0.0, None, None, 0.0]


def test_the_memory_layout_of_samples_and_chunks_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    one, other = (Monitor(action_low=[-1.0] * 14, action_high=[1.0] * 14) for _ in range(2))
    for _ in range(20):
        samples, chunk = rng.normal(size=(2, 5, 14))
        a = one.update(Step(action=chunk[0], samples=samples, chunk=chunk)).metrics
        turned: dict[str, Any] = {
            "samples": np.asfortranarray(samples),
            "chunk": np.asfortranarray(chunk),
        }
        b = other.update(Step(action=chunk[0], **turned)).metrics
        assert (a["EV"], a["CHUNK"]) == (b["EV"], b["CHUNK"])
