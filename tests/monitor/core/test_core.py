from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest

from monitor import Decision, Monitor, MonitorConfig
from monitor.core.base import Core, Plan
from monitor.core.plain import PlainCore
from tests.monitor.core.streams import some_config, some_steps


def built(core: Callable[[Plan], Core], config: MonitorConfig, dim: int) -> Monitor:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("monitor.pipeline.build_core", core)
        return Monitor(config, action_low=[-1.0] * dim, action_high=[1.0] * dim)


def same(a: Decision, b: Decision) -> None:
    for one in fields(Decision):
        x, y = getattr(a, one.name), getattr(b, one.name)
        if one.name == "action" and x is not None and y is not None:
            assert x.tolist() == y.tolist()
        elif one.name == "metrics":
            assert list(x.items()) == list(y.items())
        else:
            assert x == y, one.name


@pytest.mark.parametrize("seed", range(24))
def test_compiled_and_plain_give_the_same_bits(seed: int) -> None:
    pytest.importorskip("numba")
    from monitor.core.compiled import CompiledCore

    rng = np.random.default_rng(seed)
    dim = int(rng.choice([1, 2, 3, 5, 6, 7, 8, 14]))
    config = some_config(rng, dim)
    quick, plain = (built(core, config, dim) for core in (CompiledCore, PlainCore))
    for step in some_steps(rng, dim, 150):
        if rng.random() < 0.01:
            quick.reset()
            plain.reset()
        same(quick.update(step), plain.update(step))
        assert quick.pooled == plain.pooled
        assert quick.views() == plain.views()


def test_the_streams_reach_what_they_are_for() -> None:
    codes, modes = set[str](), set[str]()
    for seed in range(24):
        rng = np.random.default_rng(seed)
        dim = int(rng.choice([1, 2, 3, 5, 6, 7, 8, 14]))
        monitor = built(PlainCore, some_config(rng, dim), dim)
        for step in some_steps(rng, dim, 150):
            decision = monitor.update(step)
            codes |= {one.code for one in decision.faults}
            modes.add(decision.mode.value)
    assert modes == {"TASK", "RECOVER", "HALT"}
    assert codes >= {
        "VISION_BYPASS", "CAMERA_BLACK", "CAMERA_FROZEN", "STALL", "DROP", "GRIPPER_NO_RESPONSE",
        "OFF_VOCAB_TOKEN", "UNNORM_MISMATCH", "LATENCY", "ACTION_RANGE",
    }  # fmt: skip
