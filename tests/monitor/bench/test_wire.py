from __future__ import annotations

import pytest

pytest.importorskip("msgpack")
pytest.importorskip("websockets")

from monitor.bench.wire import wire_table


def test_a_step_is_timed_here_there_and_through_the_proxy() -> None:
    rows = wire_table(calls=10)
    assert [row.what for row in rows] == [
        "in this process",
        "over loopback, action only",
        "over loopback, with 7×32064 logits",
        "through the proxy, action only",
        "through the proxy, with 7×32064 logits",
    ]
    assert {row.calls for row in rows} == {10}
    assert all(0.0 < row.median_us <= row.p99_us for row in rows)
