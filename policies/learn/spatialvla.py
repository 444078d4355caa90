"""``spatialvla-mini`` in training: twelve tokens for four actions, soft labels on the cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import torch
from torch import Tensor, nn

from monitor.errors import ConfigError
from policies.json_file import read_json
from policies.learn.dataset import DATA_NAME, Batch, Demonstrations, FloatArray, action_statistics
from policies.learn.feature_cache import FeatureCache
from policies.learn.folder import write_folder
from policies.learn.frozen_encoder import FrozenEncoder
from policies.learn.losses import Losses, divergence
from policies.learn.soft_cells import CELLS, cell_count, fitted_edges, soft_cells
from policies.learn.vocabulary import WORD_SLOTS
from policies.openvla.config import GROUNDED_CONV
from policies.spatialvla.camera import camera_matrix
from policies.spatialvla.checkpoint import load_model
from policies.spatialvla.config import SpatialVLAConfig
from policies.spatialvla.conv_depth import CONV_DEPTH, spread
from policies.spatialvla.grid import TOKENS_PER_STEP
from policies.spatialvla.keys import published_key
from policies.spatialvla.model import SpatialVLA
from policies.spatialvla.recipe import Recipe
from policies.statistics import ActionStatistics, statistics_for

__all__ = ["TrainableSpatialVLA"]

SIGMAS: Final = ((0.2, 0.07), (0.3, 0.15))
"""Width of the soft labels of translation and rotation, at first and at the end."""
LATER_WEIGHT: Final = 0.5
"""Loss weight of the actions of a chunk after the first, the only one that is executed."""
_GROUPS: Final = ("translation", "rotation", "gripper")
_HEAD: Final = "language_model.lm_head.weight"


@final
class TrainableSpatialVLA:
    """A new small model, or one from a checkpoint folder.

    Its vision encoder is that of ``openvla-mini`` and stays frozen, as does its depth network,
    like ZoeDepth in the large model.

    Args:
        data: what it learns from.
        init: folder to go on from; None starts from scratch.
        features: features of the demonstrations.
    """

    def __init__(self, data: Demonstrations, init: Path | None, features: FeatureCache) -> None:
        encoder = FrozenEncoder()
        self.features, self.tokenizer = features, encoder.tokenizer
        if init is None:
            self.processor_json = _processor_json(data)
            self.model_json = _model_json(encoder)
            self.model = _new_model(self.model_json, encoder, features)
        else:
            self.processor_json = read_json(init / "processor_config.json")
            self.model_json = read_json(init / "config.json")
            self.model = load_model(init)
        config = self.model.config
        self.recipe = Recipe.from_json(self.processor_json, config.action_token_range)
        self.statistics = statistics_for(self.recipe.statistics, None)
        matrix = camera_matrix(self.recipe.cameras, DATA_NAME, config.image_size, strict=True)
        self.intrinsic = torch.from_numpy(matrix)
        image_tokens = [config.image_token_id] * config.visual_tokens
        self.prompts = torch.tensor(
            [[*image_tokens, *encoder.ids(text)] for text in data.instructions]
        )

    def groups(self) -> list[dict[str, Any]]:
        """Everything but tower, depth and words, which the tower reads as they are."""
        table = self.model.language_model.model.embed_tokens.weight
        table.requires_grad = True
        table.register_hook(_actions_alone)
        rest = [
            one
            for name, one in self.model.named_parameters()
            if not name.startswith(("vision_tower.", "vision_zoe_model.")) and one is not table
        ]
        for one in rest:
            one.requires_grad = True
        return [{"params": rest}, {"params": [table], "weight_decay": 0.0}]

    def losses(
        self, batch: Batch, rng: np.random.Generator, *, progress: float, augment: bool
    ) -> Losses:
        """Divergence of the twelve tokens from labels that sharpen as training goes on."""
        log_p = self._forward(batch, rng if augment else None)
        normalized = self.statistics.normalize(batch.chunk).reshape(-1, 7)
        place, turn = (first + (last - first) * progress for first, last in SIGMAS)
        target = soft_cells(self.recipe.grid, normalized, (place, turn))
        weight = torch.from_numpy(batch.known.astype(np.float32))
        weight[:, 1:] *= LATER_WEIGHT
        parts = {}
        for group, (low, high) in enumerate(self.recipe.grid.groups):
            labels = torch.from_numpy(target[group]).view(*weight.shape, -1)
            each = divergence(log_p[:, group::TOKENS_PER_STEP, low:high], labels)
            parts[_GROUPS[group]] = (each * weight).sum() / weight.sum()
        total = torch.stack(list(parts.values())).sum()
        return Losses(total=total, parts={name: float(one.detach()) for name, one in parts.items()})

    def predict(self, batch: Batch) -> FloatArray:
        """Likeliest first actions, each token after the true ones before it."""
        log_p = self._forward(batch, None)
        ids = log_p[:, :TOKENS_PER_STEP].argmax(dim=-1).numpy()
        return self.statistics.unnormalize(self.recipe.grid.decode(ids)).astype(np.float32)

    def save(self, folder: Path, weights: Mapping[str, Tensor]) -> None:
        """Write a checkpoint in SpatialVLA's format, in half precision."""
        named = {published_key(key): one for key, one in weights.items() if key != _HEAD}
        files = {"config": self.model_json, "processor_config": self.processor_json}
        write_folder(folder, named, files, self.tokenizer)

    def _forward(self, batch: Batch, rng: np.random.Generator | None) -> Tensor:
        """Log-probabilities of the whole vocabulary, ``(B, 3 H, V)``."""
        normalized = self.statistics.normalize(batch.chunk).reshape(-1, 7)
        ids = torch.from_numpy(self.recipe.grid.encode(normalized).reshape(len(batch.chunk), -1))
        seen, cells = self.features.pick(batch.rows, batch.other, rng)
        points = self.model.places(spread(cells), self.intrinsic)
        logits = self.model(self.prompts[batch.prompt], seen, points, ids)
        return torch.log_softmax(logits.float(), dim=-1)


def _actions_alone(gradient: Tensor) -> Tensor:
    """No gradient for the words in a table of words and actions."""
    gradient = gradient.clone()
    gradient[: WORD_SLOTS + 1] = 0.0
    return gradient


def _new_model(
    model_json: Mapping[str, Any], encoder: FrozenEncoder, features: FeatureCache
) -> SpatialVLA:
    model = SpatialVLA(SpatialVLAConfig.from_json(model_json))
    for module in model.language_model.modules():
        if isinstance(module, nn.Linear):
            module.reset_parameters()
    table = model.language_model.model.embed_tokens
    nn.init.normal_(table.weight, std=encoder.width**-0.5)
    encoder.spell(table, table.embed_scale)
    model.vision_tower.load_state_dict(encoder.tower.state_dict())
    assert model.vision_zoe_model is not None
    model.vision_zoe_model.load_state_dict(features.network)
    return model.requires_grad_(requires_grad=False)


def _processor_json(data: Demonstrations) -> dict[str, Any]:
    statistics = _statistics_json(data)
    action = ActionStatistics.from_json(statistics)
    place = action.normalize(data.action[data.train].reshape(-1, 7))[:, :3]
    theta = np.arctan2(np.hypot(place[:, 0], place[:, 1]), place[:, 2])
    camera = _camera_json(data)
    return {
        "action_chunk_size": data.horizon,
        "action_config": {"num_bins": CELLS, "use_spherical": True},
        "bin_policy": fitted_edges(theta),
        "intrinsic_config": {DATA_NAME: camera, "default": camera},
        "statistics": {DATA_NAME: {"action": statistics, "num_transitions": len(data)}},
    }


def _camera_json(data: Demonstrations) -> dict[str, Any]:
    if data.camera is None:
        msg = "these demonstrations name no camera; record them again with policies.learn.collect"
        raise ConfigError(msg)
    height, width = data.image.shape[1:3]
    return {"intrinsic": data.camera.tolist(), "width": width, "height": height}


def _statistics_json(data: Demonstrations) -> dict[str, Any]:
    """Statistics by which no motion is 0, and the gripper's tokens 0 and 1 are -1 and 1."""
    out = action_statistics(data.action[data.train])
    half = np.maximum(np.abs(out["q01"]), np.abs(out["q99"]))
    low, high = -half, half.copy()
    low[6], high[6] = -3.0, 1.0
    return out | {"q01": low.tolist(), "q99": high.tolist(), "mask": [True] * 7}


def _model_json(encoder: FrozenEncoder) -> dict[str, Any]:
    return {
        "model_type": "spatialvla",
        "action_token_begin_idx": WORD_SLOTS + 1,
        "bos_token_id": 1,
        "ego3d_patch_reso": 2,
        "eos_token_id": 2,
        "image_token_index": WORD_SLOTS,
        "n_freqs": 8,
        "projection_dim": encoder.width,
        "spatial_token_num": cell_count(),
        "use_spatial_token": False,
        "use_vision_zoe": True,
        "vision_config": {"model_type": GROUNDED_CONV, **asdict(encoder.config)},
        "vision_zoe_config": {"model_type": CONV_DEPTH},
        "text_config": {
            "model_type": "gemma2",
            "vocab_size": WORD_SLOTS + 1 + cell_count(),
            "hidden_size": encoder.width,
            "intermediate_size": 256,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "head_dim": 32,
            "query_pre_attn_scalar": 32,
            "max_position_embeddings": 128,
            "sliding_window": 128,
            "tie_word_embeddings": True,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
    }
