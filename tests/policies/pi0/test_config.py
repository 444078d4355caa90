"""What config.json of each published form comes to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from monitor.errors import ConfigError
from policies.pi0.config import Layout, PI0CheckpointConfig, read_config

FEATURES: dict[str, Any] = {
    "input_features": {
        "observation.images.base_0_rgb": {"type": "VISUAL", "shape": [3, 224, 224]},
        "observation.images.left_wrist_0_rgb": {"type": "VISUAL", "shape": [3, 224, 224]},
        "observation.images.right_wrist_0_rgb": {"type": "VISUAL", "shape": [3, 224, 224]},
        "observation.state": {"type": "STATE", "shape": [32]},
    },
    "output_features": {"action": {"type": "ACTION", "shape": [32]}},
}
BASE: dict[str, Any] = {
    "type": "pi0",
    "paligemma_variant": "gemma_2b",
    "action_expert_variant": "gemma_300m",
    "chunk_size": 50,
    "n_action_steps": 50,
    "image_resolution": [224, 224],
    "normalization_mapping": {"VISUAL": "IDENTITY", "STATE": "MEAN_STD", "ACTION": "MEAN_STD"},
    **FEATURES,
}
OLD: dict[str, Any] = {
    "type": "pi0",
    "chunk_size": 50,
    "n_action_steps": 4,
    "num_steps": 10,
    "resize_imgs_with_padding": [224, 224],
    "adapt_to_pi_aloha": False,
    **FEATURES,
}
OPENPI: dict[str, Any] = {"action_dim": 32, "action_horizon": 10, "precision": "bfloat16"}


def read(folder: Path, data: dict[str, Any]) -> PI0CheckpointConfig:
    (folder / "config.json").write_text(json.dumps(data))
    return read_config(folder)


@pytest.mark.parametrize(
    ("data", "layout", "horizon"),
    [
        (BASE, Layout.LEROBOT, 50),
        (OLD, Layout.LEROBOT_V1, 4),
        (OPENPI, Layout.OPENPI, 10),
        ({"model_type": "pi0"}, Layout.TRANSFORMERS, 50),
    ],
)
def test_the_form_is_recognised(
    data: dict[str, Any], layout: Layout, horizon: int, tmp_path: Path
) -> None:
    config = read(tmp_path, data)
    assert (config.layout, config.model.chunk_size) == (layout, horizon)
    assert config.image_size == 224
    assert config.model.num_inference_steps == 10


def test_cameras_and_sizes_come_from_the_features(tmp_path: Path) -> None:
    config = read(tmp_path, BASE)
    assert [name.rpartition(".")[2] for name in config.cameras] == [
        "base_0_rgb",
        "left_wrist_0_rgb",
        "right_wrist_0_rgb",
    ]
    assert (config.state_dim, config.action_dim) == (32, 32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "pi05"}, "of type 'pi05', expected 'pi0'"),
        ({"type": "smolvla"}, "expected 'pi0'"),
        ({"adapt_to_pi_aloha": True}, "adapt_to_pi_aloha is True"),
        ({"use_relative_actions": True}, "use_relative_actions is True"),
        ({"paligemma_variant": "gemma_300m"}, "paligemma_variant is 'gemma_300m'"),
        ({"image_resolution": [448, 448]}, r"images of \[448, 448\]"),
        ({"normalization_mapping": {"STATE": "MEAN_SD"}}, "MEAN_STD"),
        ({"tokenizer_max_length": -1}, "tokenizer_max_length is -1, must be at least 2"),
        ({"tokenizer_max_length": 0}, "tokenizer_max_length is 0"),
        ({"tokenizer_max_length": "long"}, r"config\.json holds a value that cannot be used"),
        ({"max_token_len": 1}, "max_token_len is 1"),
    ],
)
def test_what_would_change_the_meaning_is_refused(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, {**BASE, **change})


@pytest.mark.parametrize(
    ("change", "tokens"),
    [
        ({}, 48),
        ({"tokenizer_max_length": None}, 48),
        ({"tokenizer_max_length": 96}, 96),
        ({"max_token_len": 200}, 200),
    ],
)
def test_the_longest_prompt_is_the_checkpoints(
    change: dict[str, Any], tokens: int, tmp_path: Path
) -> None:
    assert read(tmp_path, {**BASE, **change}).prompt_tokens == tokens


def test_a_folder_without_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no config\.json"):
        read_config(tmp_path)
