"""openvla-mini and the published configuration are one class and run the same code."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from policies import load_policy  # noqa: E402
from policies.openvla.config import OpenVLAConfig  # noqa: E402
from policies.openvla.model import OpenVLA  # noqa: E402
from policies.openvla.published import OPENVLA_7B  # noqa: E402

OF_A_TOWER = {"towers.py", "grounded.py"}


def called(policy: Any, ids: Any) -> set[tuple[str, str]]:
    """Functions of policies/openvla, tokens and statistics that one answer goes through."""
    size = policy.config.image_size
    channels = 3 * max(len(policy.config.towers), 1)
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and "policies" in path.parts:
            seen.add((path.name, frame.f_code.co_name))

    sys.setprofile(note)
    try:
        policy.infer(input_ids=[ids], pixel_values=np.zeros((1, channels, size, size), np.float32))
    finally:
        sys.setprofile(None)
    return {one for one in seen if one[0] not in OF_A_TOWER}


def test_mini_and_two_towers_go_through_the_same_functions(shared: Path) -> None:
    mini: Any = load_policy("openvla-mini", samples=2)
    golden: Any = load_policy(
        "openvla",
        checkpoint=shared / "golden" / "openvla_tiny",
        unnorm_key="bridge_orig",
        samples=2,
    )
    assert type(mini) is type(golden)
    assert type(mini.model) is type(golden.model) is OpenVLA
    path = called(mini, [1, 5, 6])
    assert path == called(golden, [1, 5, 6])
    assert {("model.py", "decode"), ("model.py", "embed"), ("model.py", "see")} <= path


def test_the_published_configuration_builds_that_class() -> None:
    with torch.device("meta"):
        model = OpenVLA(OpenVLAConfig.from_json(OPENVLA_7B))
    mini: Any = load_policy("openvla-mini")
    assert type(model) is type(mini.model)
    assert type(model.language_model) is type(mini.model.language_model)
    assert type(model.projector) is type(mini.model.projector)
