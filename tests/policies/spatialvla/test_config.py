from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from monitor.errors import ConfigError  # noqa: E402
from policies.spatialvla.config import SpatialVLAConfig  # noqa: E402
from policies.spatialvla.keys import published_key  # noqa: E402
from policies.spatialvla.model import SpatialVLA  # noqa: E402

# What the published spatialvla-4b checkpoints say about their sizes.
SPATIALVLA_4B: dict[str, Any] = {
    "model_type": "spatialvla",
    "action_token_begin_idx": 257153,
    "bos_token_id": 2,
    "ego3d_patch_reso": 2,
    "eos_token_id": 1,
    "image_token_index": 257152,
    "n_freqs": 8,
    "projection_dim": 2304,
    "spatial_token_num": 8194,
    "text_config": {
        "_attn_implementation_autoset": True,
        "eos_token_id": [1, 107],
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "model_type": "gemma2",
        "num_hidden_layers": 26,
        "num_key_value_heads": 4,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "vocab_size": 265347,
    },
    "use_spatial_token": True,
    "use_vision_zoe": True,
    "vision_config": {
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "model_type": "siglip_vision_model",
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "num_positions": 256,
        "patch_size": 14,
        "vision_use_head": False,
    },
    "vision_zoe_config": {
        "_name_or_path": "Intel/zoedepth-nyu-kitti",
        "backbone_config": {
            "hidden_size": 1024,
            "image_size": 384,
            "intermediate_size": 4096,
            "model_type": "beit",
            "num_attention_heads": 16,
            "num_hidden_layers": 24,
            "out_features": ["stage6", "stage12", "stage18", "stage24"],
            "out_indices": [6, 12, 18, 24],
            "patch_size": 16,
            "reshape_hidden_states": False,
            "use_relative_position_bias": True,
        },
        "bin_configurations": [
            {"max_depth": 10.0, "min_depth": 0.001, "n_bins": 64, "name": "nyu"},
            {"max_depth": 80.0, "min_depth": 0.001, "n_bins": 64, "name": "kitti"},
        ],
        "model_type": "zoedepth",
        "neck_hidden_sizes": [256, 512, 1024, 1024],
        "num_patch_transformer_layers": 4,
        "patch_transformer_hidden_size": 128,
        "patch_transformer_intermediate_size": 1024,
        "patch_transformer_num_attention_heads": 4,
    },
}


@pytest.fixture(scope="module")
def published() -> SpatialVLA:
    with torch.device("meta"):
        return SpatialVLA(SpatialVLAConfig.from_json(SPATIALVLA_4B))


def test_spatialvla_4b_has_its_published_size(published: SpatialVLA) -> None:
    # Counted from upstream's own class with the same configuration, tensors and numbers.
    assert sum(p.numel() for p in published.parameters()) == 4_027_854_731
    assert len(published.state_dict()) == 1382
    assert published.config.action_token_range == (257153, 265347)
    assert published.config.visual_tokens == 256
    assert published.config.eos_token_ids == (1,)


def test_spatialvla_4b_has_its_published_names(published: SpatialVLA) -> None:
    names = {
        published_key(key): tuple(value.shape) for key, value in published.state_dict().items()
    }
    assert len(names) == 1382
    layer = "vision_zoe_model.backbone.encoder.layer.23."
    assert names[f"{layer}attention.attention.query.weight"] == (1024, 1024)
    assert f"{layer}attention.attention.key.bias" not in names
    assert names[f"{layer}intermediate.dense.weight"] == (4096, 1024)
    assert names["vision_tower.vision_model.encoder.layers.26.mlp.fc1.weight"] == (4304, 1152)
    assert names["language_model.model.layers.25.self_attn.q_proj.weight"] == (2048, 2304)
    assert names["language_model.lm_head.weight"] == (265347, 2304)
    assert names["position_embedding_3d.position_embedding_head.0.weight"] == (1152, 204)


def test_attention_is_eager_where_the_scores_are_capped_or_biased(published: SpatialVLA) -> None:
    assert published.language_model.config._attn_implementation == "eager"
    depth: Any = published.vision_zoe_model
    assert depth.backbone.config._attn_implementation == "eager"


def test_a_model_without_depth_and_action_table(variant: Callable[..., Path]) -> None:
    config = SpatialVLAConfig.from_json(
        SPATIALVLA_4B | {"use_vision_zoe": False, "use_spatial_token": False}
    )
    with torch.device("meta"):
        model = SpatialVLA(config)
    absent = (model.vision_zoe_model, model.position_embedding_3d, model.spatial_embed_tokens)
    assert absent == (None, None, None)


def test_older_names_of_the_rotary_base_are_read() -> None:
    text = SPATIALVLA_4B["text_config"] | {"rope_theta": 5000.0}
    config = SpatialVLAConfig.from_json(SPATIALVLA_4B | {"text_config": text})
    assert config.text.rope_parameters["rope_theta"] == 5000.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model_type": "openvla"}, "of a 'openvla' model"),
        ({"text_config": {"model_type": "llama"}}, "only 'gemma2'"),
        ({"projection_dim": None}, "lacks 'projection_dim'"),
        ({"vision_config": None}, "lacks 'vision_config'"),
    ],
)
def test_other_models_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SpatialVLAConfig.from_json(SPATIALVLA_4B | change)
