from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from monitor.errors import ConfigError, MissingExtraError  # noqa: E402
from policies import load_policy  # noqa: E402

INSTALLED = importlib.util.find_spec("bitsandbytes") is not None


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "golden" / "openvla_tiny"


def policy(folder: Path, **kwargs: Any) -> Any:
    return load_policy("openvla", checkpoint=folder, unnorm_key="bridge_orig", **kwargs)


def test_an_unknown_quantization_is_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match="unknown quantization '3bit'"):
        policy(folder, quantization="3bit")


def test_a_missing_quantiser_gets_its_pip_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policies.openvla.quantization.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="pip install bitsandbytes"):
        policy(folder, quantization="4bit")


@pytest.mark.skipif(not INSTALLED, reason="needs bitsandbytes")
@pytest.mark.parametrize("quantization", ["4bit", "8bit"])
def test_a_quantised_model_stays_near_the_whole_one(folder: Path, quantization: str) -> None:
    inputs = np.load(folder / "inputs.npz")
    question = {"input_ids": inputs["input_ids"], "pixel_values": inputs["pixel_values"]}
    whole = policy(folder).infer(**question).token_logits
    small = policy(folder, quantization=quantization)
    layers = small.model.language_model.model.layers
    assert type(layers[0].mlp.gate_proj).__module__.startswith("bitsandbytes")
    assert type(small.model.language_model.lm_head) is torch.nn.Linear
    logits = small.infer(**question).token_logits
    assert np.isfinite(logits).all()
    error = np.abs(logits[0] - whole[0]).max()
    assert 0.0 < error < 0.5 * np.ptp(whole[0])
