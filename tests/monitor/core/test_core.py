from __future__ import annotations

import numpy as np
import pytest

from monitor import Decision, Monitor, MonitorConfig
from tests.monitor.core.reference.core import ReferenceCore
from tests.monitor.core.streams import some_config, some_steps


def ours(config: MonitorConfig, dim: int) -> Monitor:
    return Monitor(config, action_low=[-1.0] * dim, action_high=[1.0] * dim)


def reference(config: MonitorConfig, dim: int) -> Monitor:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("monitor.pipeline.Core", ReferenceCore)
        return ours(config, dim)


def same(a: Decision, b: Decision) -> None:
    for name in Decision.__struct_fields__:
        x, y = getattr(a, name), getattr(b, name)
        if name == "action" and x is not None and y is not None:
            assert x.tolist() == y.tolist()
        elif name == "metrics":
            assert list(x.items()) == list(y.items())
        else:
            assert x == y, name


@pytest.mark.usefixtures("numba_or_not")
@pytest.mark.parametrize("seed", range(24))
def test_both_ways_give_the_bits_of_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dim = int(rng.choice([1, 2, 3, 5, 6, 7, 8, 14]))
    config = some_config(rng, dim)
    a, b = ours(config, dim), reference(config, dim)
    for step in some_steps(rng, dim, 150):
        if rng.random() < 0.01:
            a.reset()
            b.reset()
        same(a.update(step), b.update(step))
        assert a.pooled == b.pooled
        assert a.views() == b.views()


def test_the_streams_reach_what_they_are_for() -> None:
    codes, modes = set[str](), set[str]()
    for seed in range(24):
        rng = np.random.default_rng(seed)
        dim = int(rng.choice([1, 2, 3, 5, 6, 7, 8, 14]))
        monitor = ours(some_config(rng, dim), dim)
        for step in some_steps(rng, dim, 150):
            decision = monitor.update(step)
            codes |= {one.code for one in decision.faults}
            modes.add(decision.mode.value)
    assert modes == {"TASK", "RECOVER", "HALT"}
    assert codes >= {
        "VISION_BYPASS", "CAMERA_BLACK", "CAMERA_FROZEN", "STALL", "DROP", "GRIPPER_NO_RESPONSE",
        "OFF_VOCAB_TOKEN", "UNNORM_MISMATCH", "LATENCY", "ACTION_RANGE",
    }  # fmt: skip
