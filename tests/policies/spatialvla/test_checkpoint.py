"""Loading: everything is filled from the folder, or nothing is loaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file, save_file  # noqa: E402

from monitor.errors import ConfigError  # noqa: E402
from policies.checkpoint import CheckpointError  # noqa: E402
from policies.spatialvla.checkpoint import load_model  # noqa: E402
from policies.spatialvla.config import SpatialVLAConfig  # noqa: E402
from policies.spatialvla.model import SpatialVLA  # noqa: E402


@pytest.fixture
def copy(tiny: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny, tmp_path / "copy"))


def change(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize(
    "key",
    [
        "language_model.lm_head.weight",
        "spatial_embed_tokens.weight",
        "position_embedding_3d.position_embedding_head.1.weight",
        "vision_tower.vision_model.post_layernorm.bias",
        "vision_zoe_model.backbone.encoder.layer.2.attention.attention."
        "relative_position_bias.relative_position_bias_table",
    ],
)
def test_a_missing_tensor_is_refused_by_its_published_name(copy: Path, key: str) -> None:
    change(copy, lambda tensors: tensors.pop(key))
    with pytest.raises(CheckpointError, match=rf"^1 keys do not fit: missing {key}$"):
        load_model(copy)


def test_unexpected_and_misshaped_tensors_are_refused(copy: Path) -> None:
    def edit(tensors: dict[str, Any]) -> None:
        tensors["language_model.stray.weight"] = torch.zeros(1)
        tensors["multi_modal_projector.linear.bias"] = torch.zeros(3)

    change(copy, edit)
    with pytest.raises(CheckpointError) as caught:
        load_model(copy)
    text = str(caught.value)
    assert "unexpected language_model.stray.weight" in text
    assert "multi_modal_projector.linear.bias has shape (3,), config.json asks for (24,)" in text


def test_nothing_is_random_and_nothing_is_left_on_meta(tiny: Path) -> None:
    torch.manual_seed(0)
    first = load_model(tiny)
    torch.manual_seed(1)
    second = load_model(tiny)
    named = {**dict(first.named_parameters()), **dict(first.named_buffers())}
    other = {**dict(second.named_parameters()), **dict(second.named_buffers())}
    assert len(named) > 200
    for key, value in named.items():
        assert value.device.type == "cpu", key
        assert torch.equal(value, other[key]), key


def test_buffers_equal_those_of_a_model_built_in_memory(tiny: Path) -> None:
    built = SpatialVLA(SpatialVLAConfig.from_folder(tiny))
    loaded = dict(load_model(tiny).named_buffers())
    wanted = dict(built.named_buffers())
    assert loaded.keys() == wanted.keys()
    for key, value in wanted.items():
        assert torch.equal(loaded[key], value), key


def test_the_table_of_action_tokens_wins(tiny: Path) -> None:
    model = load_model(tiny)
    low, high = model.config.action_token_range
    given = load_file(tiny / "model.safetensors")
    table = model.language_model.model.embed_tokens.weight
    assert torch.equal(table[low:high], given["spatial_embed_tokens.weight"])
    assert not torch.equal(
        given["language_model.model.embed_tokens.weight"][low:high], table[low:high]
    )
    assert torch.equal(table[:low], given["language_model.model.embed_tokens.weight"][:low])


def test_a_tied_head_needs_no_tensor_of_its_own(variant: Callable[..., Path]) -> None:
    model = load_model(variant({"tie_word_embeddings": True}))
    embedding = model.language_model.model.embed_tokens.weight
    assert model.language_model.lm_head.weight is embedding


def test_an_untied_head_is_never_taken_from_the_embedding(tiny: Path) -> None:
    model = load_model(tiny)
    head = load_file(tiny / "model.safetensors")["language_model.lm_head.weight"]
    assert torch.equal(model.language_model.lm_head.weight, head)


def test_sharded_weights_are_the_same_weights(copy: Path, tiny: Path) -> None:
    tensors = load_file(copy / "model.safetensors")
    names = sorted(tensors)
    shards = {"model-00001-of-00002.safetensors": names[:50]}
    shards["model-00002-of-00002.safetensors"] = names[50:]
    for name, keys in shards.items():
        save_file({key: tensors[key] for key in keys}, copy / name)
    index = {key: name for name, keys in shards.items() for key in keys}
    text = json.dumps({"metadata": {}, "weight_map": index})
    (copy / "model.safetensors.index.json").write_text(text, encoding="utf-8")
    (copy / "model.safetensors").unlink()
    whole, again = load_model(tiny).state_dict(), load_model(copy).state_dict()
    assert all(torch.equal(whole[key], value) for key, value in again.items())
    (copy / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(CheckpointError, match="lists model-00002-of-00002"):
        load_model(copy)


def test_bfloat16_is_taken_straight_from_the_files(tiny: Path) -> None:
    model = load_model(tiny, torch.bfloat16)
    assert {value.dtype for value in model.parameters()} == {torch.bfloat16}
    # What is computed keeps its own type: positions must not lose their last bits.
    assert model.language_model.model.rotary_emb.inv_freq.dtype == torch.float32
    pixels, camera = torch.full((1, 3, 56, 56), 0.4), torch.eye(3)
    with torch.inference_mode():
        half = model.see(pixels.bfloat16(), camera).float()
        full = load_model(tiny).see(pixels, camera)
    assert np.abs((half - full).numpy()).max() < 0.1 * float(full.abs().max())


def test_a_folder_without_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config\.json"):
        load_model(tmp_path)
