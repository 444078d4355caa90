"""What the check before a run says of OpenVLA as it is, and of copies broken in known ways."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from monitor.rollout.preflight.sensitivity import check_sensitivity  # noqa: E402
from policies import load_policy  # noqa: E402
from policies.learn.vocabulary import build_tokenizer  # noqa: E402

RED = "put the red cube on the plate"
IMAGE = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def two_towers(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden checkpoint with a tokenizer, so that it can be asked in words."""
    folder = tmp_path_factory.mktemp("two_towers")
    for name in ("config.json", "model.safetensors", "preprocessor_config.json"):
        shutil.copyfile(shared / "golden" / "openvla_tiny" / name, folder / name)
    (folder / "tokenizer.json").write_text(build_tokenizer((RED,)).to_str(), encoding="utf-8")
    return folder


@pytest.fixture(params=["openvla", "openvla-mini"])
def policy(request: pytest.FixtureRequest, two_towers: Path) -> Any:
    if request.param == "openvla-mini":
        return load_policy("openvla-mini")
    return load_policy("openvla", checkpoint=two_towers, unnorm_key="bridge_orig")


def without_picture(embed: Callable[..., Any], ids: Any, visual: Any) -> Any:
    """The features never reach the language model."""
    whole = embed(ids, visual)
    return torch.cat([whole[:, :1], whole[:, 1 + visual.tokens.shape[1] :]], dim=1)


def cropped(embed: Callable[..., Any], ids: Any, visual: Any) -> Any:
    """Only the last token is left, as where an empty cache is taken for a full one."""
    return embed(ids, visual)[:, -1:]


def test_the_right_one_looks_and_reads(policy: Any) -> None:
    report = check_sensitivity(policy, IMAGE, RED)
    assert report.fault is None
    assert (report.sees, report.reads, report.repeat) == (True, True, 0.0)


@pytest.mark.parametrize(("damage", "reads"), [(without_picture, True), (cropped, False)])
def test_a_copy_that_drops_its_picture_is_found_out(
    policy: Any, damage: Callable[..., Any], reads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = policy.model.embed
    monkeypatch.setattr(policy.model, "embed", lambda ids, visual: damage(embed, ids, visual))
    report = check_sensitivity(policy, IMAGE, RED)
    assert report.fault == "VISION_BYPASS"
    assert report.reads is reads


def test_a_projector_of_zeros_is_found_out(policy: Any) -> None:
    with torch.no_grad():
        for weight in policy.model.projector.parameters():
            weight.zero_()
    assert check_sensitivity(policy, IMAGE, RED).fault == "VISION_BYPASS"
