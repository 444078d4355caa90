from __future__ import annotations

import numpy as np
import pytest

from monitor.ring import Ring


@pytest.mark.parametrize("capacity", [1, 2, 5, 8])
def test_view_is_the_tail_of_the_stream_on_every_prefix(capacity: int) -> None:
    stream = np.random.default_rng(capacity).normal(size=(30, 3))
    ring = Ring(capacity, 3)
    for end, row in enumerate(stream, start=1):
        ring.push(row)
        np.testing.assert_array_equal(ring.view(), stream[max(0, end - capacity) : end])
        assert ring.full == (end >= capacity)


def test_pushed_rows_are_copies() -> None:
    row = np.zeros(2)
    ring = Ring(3, 2)
    ring.push(row)
    row += 1.0
    ring.push(row)
    np.testing.assert_array_equal(ring.view(), [[0.0, 0.0], [1.0, 1.0]])


def test_a_cleared_ring_is_as_new() -> None:
    ring, new = Ring(2, 1), Ring(2, 1)
    for x in (1.0, 2.0, 3.0):
        ring.push(x)
    ring.clear()
    assert len(ring) == 0
    for one in (ring, new):
        one.push(7.0)
    np.testing.assert_array_equal(ring.view(), new.view())
