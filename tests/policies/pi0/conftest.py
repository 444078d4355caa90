"""Tiny π0 checkpoints with random weights, in each form in which real ones are published."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import save_file  # noqa: E402
from transformers import PI0Config  # noqa: E402

from policies.learn.vocabulary import build_tokenizer  # noqa: E402
from policies.pi0.checkpoint import build_model  # noqa: E402

INSTRUCTIONS = ("put the red cube on the plate", "put the blue can on the plate")
VOCABULARY = 600
VLM = {
    "model_type": "paligemma",
    "image_token_id": VOCABULARY,
    "projection_dim": 32,
    "text_config": {
        "model_type": "gemma",
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "intermediate_size": 48,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "vocab_size": VOCABULARY,
    },
    "vision_config": {
        "model_type": "siglip_vision_model",
        "hidden_size": 24,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "patch_size": 14,
        "image_size": 28,
        "vision_use_head": False,
    },
}
DIT = {
    "model_type": "gemma",
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
}
MEAN = {"action": [0.001, 0.0, -0.001, 0.0, 0.0, 0.0, 0.5], "observation.state": [0.1] * 8}
STD = {"action": [0.01, 0.01, 0.01, 0.03, 0.03, 0.05, 0.4], "observation.state": [0.2] * 8}

LEROBOT: dict[str, Any] = {
    "type": "pi0",
    "chunk_size": 4,
    "n_action_steps": 4,
    "max_state_dim": 32,
    "max_action_dim": 32,
    "num_inference_steps": 10,
    "paligemma_variant": "gemma_2b",
    "action_expert_variant": "gemma_300m",
    "tokenizer_max_length": 48,
    "input_features": {
        "observation.images.image_0": {"type": "VISUAL", "shape": [3, 28, 28]},
        "observation.state": {"type": "STATE", "shape": [8]},
    },
    "output_features": {"action": {"type": "ACTION", "shape": [7]}},
    "normalization_mapping": {"VISUAL": "IDENTITY", "STATE": "MEAN_STD", "ACTION": "MEAN_STD"},
    "vlm_config": VLM,
    "dit_config": DIT,
}

_PREFIX = "paligemma_with_expert."
_EXPERT = (
    (r"model\.dit\.embed_tokens\.", _PREFIX + "gemma_expert.lm_head."),
    (r"model\.dit\.", _PREFIX + "gemma_expert.model."),
)
_NEW = (
    (r"model\.vlm\.language_model\.embed_tokens\.", _PREFIX + "paligemma.lm_head."),
    (r"model\.vlm\.vision_tower\.", _PREFIX + "paligemma.model.vision_tower.vision_model."),
    (r"model\.vlm\.", _PREFIX + "paligemma.model."),
)
_OLD = (
    (r"model\.vlm\.language_model\.embed_tokens\.", _PREFIX + "paligemma.language_model.lm_head."),
    (r"model\.vlm\.language_model\.", _PREFIX + "paligemma.language_model.model."),
    (r"model\.vlm\.vision_tower\.", _PREFIX + "paligemma.vision_tower.vision_model."),
    (r"model\.vlm\.", _PREFIX + "paligemma."),
)


@dataclass(frozen=True, kw_only=True)
class Tiny:
    """Weights of the tiny model under transformers' names, and writers of published folders."""

    weights: dict[str, Any]
    config: Mapping[str, Any] = field(default_factory=lambda: LEROBOT)
    mean: Mapping[str, list[float]] = field(default_factory=lambda: MEAN)
    std: Mapping[str, list[float]] = field(default_factory=lambda: STD)

    def published(self, form: str) -> dict[str, Any]:
        """Tensors as ``lerobot``, ``lerobot-v1`` or ``openpi`` names them."""
        rules = ((r"embed_action_time\.", ""), *_EXPERT, *(_OLD if form == "lerobot-v1" else _NEW))
        wrap = "" if form == "openpi" else "model."
        out = {}
        for key, value in self.weights.items():
            matches = (re.sub("^" + old, new, key) for old, new in rules if re.match(old, key))
            out[wrap + next(matches, key)] = value
        return out

    def write(self, folder: Path, tensors: Mapping[str, Any], **config: Any) -> None:
        """Leave a folder as LeRobot's ``save_pretrained`` does, and a tokenizer."""
        (folder / "config.json").write_text(json.dumps({**self.config, **config}))
        whole = {key: value.contiguous().clone() for key, value in tensors.items()}
        save_file(whole, folder / "model.safetensors")
        (folder / "tokenizer.json").write_text(build_tokenizer(INSTRUCTIONS).to_str())
        for name, kind in (("pre", "normalizer"), ("post", "unnormalizer")):
            state = f"policy_{name}processor_step_5_{kind}_processor.safetensors"
            steps = [
                {"registry_name": "rename_observations_processor", "config": {}},
                {"registry_name": f"{kind}_processor", "config": {}, "state_file": state},
            ]
            (folder / f"policy_{name}processor.json").write_text(json.dumps({"steps": steps}))
            stats = {f"{key}.mean": torch.tensor(value) for key, value in self.mean.items()}
            stats |= {f"{key}.std": torch.tensor(value) for key, value in self.std.items()}
            save_file(stats, folder / state)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny() -> Tiny:
    """The tiny model, with weights large enough that every path matters."""
    rng = np.random.default_rng(0)
    weights = {}
    for key, shape in sorted(_shapes().items()):
        fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 100
        values = rng.standard_normal(shape) / np.sqrt(fan_in)
        if key.endswith(("layer_norm1.weight", "layer_norm2.weight", "post_layernorm.weight")):
            values += 1.0
        weights[key] = torch.tensor(values, dtype=torch.float32)
    return Tiny(weights=weights)


def _shapes() -> dict[str, tuple[int, ...]]:
    sizes = {name: LEROBOT[name] for name in ("vlm_config", "dit_config", "chunk_size")}
    model = build_model(PI0Config(**json.loads(json.dumps(sizes))))
    return {key: tuple(value.shape) for key, value in model.state_dict().items()}


Write = Callable[..., Path]


@pytest.fixture(scope="session")
def write_checkpoint(tmp_path_factory: pytest.TempPathFactory, tiny: Tiny) -> Write:
    """Writer of LeRobot folders; ``change(tensors)`` edits the tensors, keywords the config."""

    def write(change: Callable[[dict[str, Any]], Any] | None = None, **config: Any) -> Path:
        folder = tmp_path_factory.mktemp("pi0")
        tensors = {key: value.clone() for key, value in tiny.published("lerobot").items()}
        if change is not None:
            change(tensors)
        tiny.write(folder, tensors, **config)
        return folder

    return write


@pytest.fixture(scope="session")
def checkpoint(write_checkpoint: Write) -> Path:
    """A LeRobot folder of the tiny model."""
    return write_checkpoint()


@pytest.fixture
def image() -> Any:
    """An image with a gradient and noise, 30 x 40."""
    rng = np.random.default_rng(1)
    ramp = np.linspace(0, 200, 40)[None, :, None] + rng.uniform(0, 50, (30, 40, 3))
    return ramp.astype(np.uint8)
