"""Loading π0: every published form, nothing missing, nothing left over, nothing at random."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import PI0Config, PI0ForConditionalGeneration

from policies.checkpoint import CheckpointError
from policies.pi0.checkpoint import build_model, load_model
from policies.pi0.config import read_config
from policies.pi0.keys import HEAD, native_names

Weights = dict[str, Any]
Write = Callable[..., Path]
P = "model.paligemma_with_expert."


def load(folder: Path, **kwargs: Any) -> Any:
    return load_model(folder, read_config(folder).model, **kwargs)


def check_equal(model: Any, weights: Weights) -> None:
    state = model.state_dict()
    assert state.keys() == weights.keys() - {HEAD}
    for key, value in state.items():
        assert torch.equal(value, weights[key]), key


@pytest.mark.parametrize("form", ["lerobot", "lerobot-v1", "openpi"])
def test_every_published_form_gives_the_same_weights(form: str, tiny: Any, tmp_path: Path) -> None:
    tiny.write(tmp_path, tiny.published(form))
    loaded = load(tmp_path, keep_head=True)
    check_equal(loaded.model, tiny.weights)
    assert torch.equal(loaded.head, tiny.weights[HEAD])
    assert all(not one.is_meta for one in loaded.model.buffers())


def test_transformers_reads_the_same_folder_alike(checkpoint: Path, tiny: Any) -> None:
    theirs, report = PI0ForConditionalGeneration.from_pretrained(
        checkpoint, config=read_config(checkpoint).model, output_loading_info=True
    )
    assert not report["missing_keys"]
    state = theirs.state_dict()
    assert all(torch.equal(state[key], value) for key, value in tiny.weights.items())
    ours = dict(load(checkpoint).model.named_buffers())
    for name, value in theirs.named_buffers():
        if not name.startswith("model.dit.embed_tokens."):
            torch.testing.assert_close(ours[name].to(value.dtype), value, rtol=1e-6, atol=0.0)


def test_a_folder_that_transformers_saved_loads(
    checkpoint: Path, tiny: Any, tmp_path: Path
) -> None:
    with torch.device("cpu"):
        model = PI0ForConditionalGeneration(read_config(checkpoint).model)
    model.load_state_dict(tiny.weights)
    model.save_pretrained(tmp_path)
    check_equal(load(tmp_path).model, tiny.weights)


CHANGES: dict[str, tuple[Callable[[Weights], Any], str]] = {
    "missing": (
        lambda t: t.pop(P + "paligemma.model.multi_modal_projector.linear.bias"),
        "missing model.vlm.multi_modal_projector.linear.bias",
    ),
    "missing projection": (
        lambda t: t.pop("model.action_time_mlp_in.weight"),
        "missing embed_action_time.action_time_mlp_in.weight",
    ),
    "missing embedding": (
        lambda t: t.pop(P + "paligemma.lm_head.weight"),
        "missing model.vlm.language_model.embed_tokens.weight",
    ),
    "missing head": (lambda t: t.pop(P + "gemma_expert.lm_head.weight"), f"missing {HEAD}"),
    "unexpected": (
        lambda t: t.update({"model.time_mlp_in.weight": torch.zeros(16, 16)}),
        "unexpected time_mlp_in.weight",
    ),
    "misshaped": (
        lambda t: t.update({"model.action_out_proj.bias": torch.zeros(31)}),
        r"action_out_proj.bias has shape \(31,\), config.json asks for \(32,\)",
    ),
    "twice": (
        lambda t: t.update({"state_proj.bias": torch.zeros(16)}),
        "state_proj.bias are the same tensor",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_checkpoint_that_does_not_fit_is_refused_by_key(
    name: str, write_checkpoint: Write
) -> None:
    change, message = CHANGES[name]
    folder = write_checkpoint(change)
    with pytest.raises(CheckpointError, match=message):
        load(folder)


def test_any_single_lost_tensor_is_noticed(tiny: Any) -> None:
    names = list(tiny.published("lerobot"))
    native = native_names(names)
    assert set(native) == set(tiny.weights)
    for lost in names:
        assert len(native_names(name for name in names if name != lost)) == len(native) - 1


def test_shards_are_read(tiny: Any, tmp_path: Path) -> None:
    tiny.write(tmp_path, tiny.published("lerobot"))
    whole = load_file(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    parts = {"a.safetensors": list(whole)[::2], "b.safetensors": list(whole)[1::2]}
    for file, names in parts.items():
        save_file({name: whole[name] for name in names}, tmp_path / file)
    index = {"weight_map": {name: file for file, names in parts.items() for name in names}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    check_equal(load(tmp_path).model, tiny.weights)


def test_half_precision_keeps_the_projections_whole(checkpoint: Path) -> None:
    model = load(checkpoint, dtype=torch.bfloat16).model
    assert {value.dtype for key, value in model.model.state_dict().items()} == {torch.bfloat16}
    assert model.action_out_proj.weight.dtype == torch.float32
    assert model.embed_action_time.state_proj.weight.dtype == torch.float32


def test_the_full_size_is_that_of_the_published_checkpoint() -> None:
    model = build_model(PI0Config())
    count = sum(one.numel() for one in model.parameters())
    head = model.model.dit.embed_tokens.weight.numel()
    assert all(one.is_meta for one in model.parameters())
    assert len(model.state_dict()) == 777  # LeRobot counts as many keys in lerobot/pi0_base
    assert count == 3_501_372_176  # 14.0 GB in float32, as lerobot/pi0_base has them
    assert head == 257_152 * 1024
    assert count - head == 3_238_048_528  # without the head: openpi's 3.24 B that act
