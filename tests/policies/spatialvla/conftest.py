"""A small SpatialVLA with random weights, in the format of the published checkpoints.

Its sizes differ from the golden model's in every respect that the configuration leaves free.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import save_file  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402

from policies.spatialvla.config import SpatialVLAConfig  # noqa: E402
from policies.spatialvla.keys import published_key  # noqa: E402
from policies.spatialvla.model import SpatialVLA  # noqa: E402

WORDS = [
    "put",
    "the",
    "red",
    "blue",
    "cube",
    "can",
    "carrot",
    "on",
    "plate",
    "sink",
    "towel",
    "spoon",
    "what",
    "should",
    "robot",
    "do",
]
LINE_BREAK = 4
"""Its id; every prompt ends with it."""
BEGIN = 40
"""First of the action ids."""
SIZES = (4 * 6 * 2, 3 * 3 * 3, 2)
"""Cells of the small grid: translation, rotation, gripper."""
CELLS = sum(SIZES)
VOCABULARY = BEGIN + CELLS

CONFIG: dict[str, Any] = {
    "model_type": "spatialvla",
    "bos_token_id": 2,
    "eos_token_id": 1,
    "image_token_index": 39,
    "action_token_begin_idx": BEGIN,
    "spatial_token_num": CELLS,
    "use_spatial_token": True,
    "use_vision_zoe": True,
    "ego3d_patch_reso": 1,
    "n_freqs": 4,
    "projection_dim": 24,
    "text_config": {
        "model_type": "gemma2",
        "vocab_size": VOCABULARY,
        "hidden_size": 24,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 12,
        "query_pre_attn_scalar": 12,
        "tie_word_embeddings": False,
    },
    "vision_config": {
        "model_type": "siglip_vision_model",
        "image_size": 56,
        "patch_size": 14,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "vision_use_head": False,
    },
    "vision_zoe_config": {
        "model_type": "zoedepth",
        "backbone_config": {
            "model_type": "beit",
            "image_size": 384,
            "patch_size": 32,
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_hidden_layers": 4,
            "num_attention_heads": 1,
            "out_features": ["stage1", "stage2", "stage3", "stage4"],
            "reshape_hidden_states": False,
            "use_relative_position_bias": True,
        },
        "bin_configurations": [{"n_bins": 8, "min_depth": 0.001, "max_depth": 10.0}],
        "bin_embedding_dim": 8,
        "bottleneck_features": 8,
        "fusion_hidden_size": 8,
        "neck_hidden_sizes": [8, 8, 8, 8],
        "num_attractors": [2, 2, 1, 1],
        "num_relative_features": 4,
    },
}

ACTION = {
    "q01": [-0.03] * 3 + [-0.05] * 3 + [0.0],
    "q99": [0.03] * 3 + [0.05] * 3 + [1.0],
    "mask": [True] * 6 + [False],
}
CAMERA = {"intrinsic": [[96.0, 0.0, 48.0], [0.0, 96.0, 48.0], [0.0, 0.0, 1.0]]}
PROCESSOR: dict[str, Any] = {
    "action_chunk_size": 3,
    "action_config": {
        "num_bins": {
            "translation": {"theta_bins": 4, "phi_bins": 6, "r_bins": 2},
            "rotation": {"roll_bins": 3, "pitch_bins": 3, "yaw_bins": 3},
            "gripper": 2,
        },
        "use_spherical": True,
    },
    "bin_policy": None,
    "intrinsic_config": {
        "toy_kitchen": {**CAMERA, "width": 96, "height": 96},
        "default": {**CAMERA, "width": 192, "height": 96},
    },
    "statistics": {"toy_kitchen": {"action": ACTION}, "toy_lab": {"action": ACTION}},
}


def word_tokenizer() -> Tokenizer:
    """One id a word, from 3 up; a line break is a word."""
    vocabulary = {"<unk>": 3, "\n": LINE_BREAK} | {word: 5 + i for i, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(" ", "removed"), pre_tokenizers.Split("\n", "isolated")]
    )
    return tokenizer


def write_checkpoint(folder: Path, config: dict[str, Any], *, seed: int = 0) -> Path:
    """A checkpoint of a configuration whose weights are large enough to react to everything."""
    model = SpatialVLA(SpatialVLAConfig.from_json(config))
    chance = torch.Generator().manual_seed(seed)
    tensors = {}
    for key, value in model.state_dict().items():
        drawn = torch.randn(value.shape, generator=chance)
        fan_in = max(1, value[0].numel() if value.ndim > 1 else 1)
        scale = 0.1 if value.ndim < 2 else 1.0 if "embed" in key else fan_in**-0.5
        tensors[published_key(key)] = drawn * scale
    tensors["language_model.lm_head.weight"] *= 3.0
    _set_groups_apart(tensors)
    if config["text_config"]["tie_word_embeddings"]:
        del tensors["language_model.lm_head.weight"]
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "processor_config.json").write_text(json.dumps(PROCESSOR), encoding="utf-8")
    (folder / "tokenizer.json").write_text(word_tokenizer().to_str(), encoding="utf-8")
    return folder


def _set_groups_apart(tensors: dict[str, Any]) -> None:
    """One direction a group, so that translation, rotation and gripper follow one another."""
    head = tensors["language_model.lm_head.weight"]
    prompt, actions = (
        tensors["language_model.model.embed_tokens.weight"],
        tensors["spatial_embed_tokens.weight"],
    )
    for table in (head, prompt, actions):
        table[:, : len(SIZES)] = 0.0
    prompt[LINE_BREAK, 0] = 4.0
    ends = [sum(SIZES[:count]) for count in range(len(SIZES) + 1)]
    for group, (low, high) in enumerate(pairwise(ends)):
        head[BEGIN + low : BEGIN + high, group] = 8.0
        actions[low:high, (group + 1) % len(SIZES)] = 4.0


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the small checkpoint."""
    return write_checkpoint(tmp_path_factory.mktemp("spatialvla"), CONFIG)


@pytest.fixture
def variant(tmp_path: Path) -> Callable[..., Path]:
    """Writes a checkpoint whose ``config.json`` differs."""

    def write(text: dict[str, Any] | None = None, **top: Any) -> Path:
        config = CONFIG | top
        config["text_config"] = CONFIG["text_config"] | (text or {})
        return write_checkpoint(tmp_path, config)

    return write
