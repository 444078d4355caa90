"""The double is what was recorded from the real SimplerEnv, field by field."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RECORDER = Path(__file__).parents[3] / "scripts" / "record_simpler.py"
NEAR = {"motion": 0.03, "extrinsic": 2e-3, "poses": 2e-3, "tcp": 2e-3}
"""How far numbers may be apart, by the field they are under; elsewhere 1e-3."""
RECORDED = sorted(json.loads((Path(__file__).parent / "facts.json").read_text())["tasks"])


@pytest.fixture(scope="module")
def recorder(facts: Any) -> Any:
    spec = importlib.util.spec_from_file_location("record_simpler", RECORDER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def differences(real: Any, fake: Any, at: str = "", near: float = 1e-3) -> list[str]:
    """Every place at which two nested values differ."""
    near = NEAR.get(at.rpartition(".")[2], near)
    if isinstance(real, Mapping) and isinstance(fake, Mapping):
        if set(real) != set(fake):
            return [f"{at}: keys {sorted(set(real) ^ set(fake))}"]
        return [
            text for key in real for text in differences(real[key], fake[key], f"{at}.{key}", near)
        ]
    if isinstance(real, list) and isinstance(fake, list) and len(real) == len(fake):
        pairs = enumerate(zip(real, fake, strict=True))
        return [text for k, (a, b) in pairs for text in differences(a, b, f"{at}[{k}]", near)]
    if isinstance(real, float | int) and isinstance(fake, float | int):
        return [] if abs(real - fake) <= near else [f"{at}: {real} and {fake}"]
    return [] if real == fake else [f"{at}: {real!r} and {fake!r}"]


@pytest.mark.parametrize("name", RECORDED)
def test_the_double_is_the_real_one_field_by_field(recorder: Any, facts: Any, name: str) -> None:
    assert not differences(facts["tasks"][name], recorder.record_task(name))


def test_the_table_of_tasks_is_the_real_one(recorder: Any, facts: Any) -> None:
    assert recorder.record_table() == facts["table"]


def test_a_difference_is_found_wherever_it_is(facts: Any) -> None:
    real = facts["tasks"]["google_robot_pick_coke_can"]
    for key, other in (("qpos", [*real["qpos"][:-1], 9.0]), ("step", {}), ("sim_freq", 500)):
        assert differences(real, {**real, key: other})
    assert np.isfinite(real["tcp"]).all()
