"""``openvla-mini`` in training: seven soft-labelled tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import torch
from torch import Tensor

from policies.learn.dataset import (
    DATA_NAME,
    Batch,
    Demonstrations,
    FloatArray,
    action_statistics,
    soft_targets,
)
from policies.learn.losses import Losses, LossWeights, divergence, whole_loss
from policies.learn.trainable import given_pixels
from policies.learn.vocabulary import WORD_SLOTS, build_tokenizer
from policies.openvla.checkpoint import load_model, save_model
from policies.openvla.config import (
    GroundedConvConfig,
    LlamaSizes,
    OpenVLAConfig,
    grounded_conv_json,
)
from policies.openvla.grounded import VisualTokens
from policies.openvla.model import OpenVLA
from policies.openvla.prompt import load_tokenizer, prompt_ids
from policies.openvla.tokens import ActionStatistics, decode_ids, encode_actions

__all__ = ["TrainableOpenVLA"]

PAD: Final = 16
_PARTS: Final = ("x", "y", "z", "roll", "pitch", "yaw", "gripper")
SIGMA_BINS: Final = 3.0
FINAL_SIGMA_BINS: Final = 1.0
"""Width of the soft labels; it falls from the one to the other in the last quarter."""


@final
class TrainableOpenVLA:
    """A new small model, or one from a checkpoint folder.

    Args:
        data: what it learns from.
        init: folder to start from; its words and statistics stay.
        weights: weights of the auxiliary losses.
    """

    def __init__(
        self, data: Demonstrations, init: Path | None = None, weights: LossWeights | None = None
    ) -> None:
        self.weights = LossWeights() if weights is None else weights
        if init is None:
            tokenizer = build_tokenizer(data.instructions)
            self.model_json = _new_model_json(data)
            self.model = OpenVLA(OpenVLAConfig.from_json(self.model_json))
            self.model.init_fan_in()
        else:
            tokenizer = load_tokenizer(init)
            self.model = load_model(init).requires_grad_(requires_grad=True)
            self.model_json = dict(self.model.config.source)
        self.tokenizer_json: str = tokenizer.to_str(pretty=True)
        self.statistics = ActionStatistics.from_json(
            next(iter(self.model_json["norm_stats"].values()))["action"]
        )
        self.prompts, self.prompt_mask = _prompt_table(data.instructions, tokenizer)

    def groups(self) -> list[dict[str, Any]]:
        """Everything."""
        return [{"params": list(self.model.parameters())}]

    def losses(
        self, batch: Batch, rng: np.random.Generator, *, progress: float, augment: bool
    ) -> Losses:
        """Divergence of the seven tokens from labels that sharpen towards the end."""
        log_p, visual = self._forward(batch, rng if augment else None)
        late = max(0.0, (progress - 0.75) / 0.25)
        sigma = SIGMA_BINS + (FINAL_SIGMA_BINS - SIGMA_BINS) * late
        normalized = self.statistics.normalize(batch.action)
        target = torch.from_numpy(soft_targets(normalized, sigma, self.model.config.n_action_bins))
        action = dict(zip(_PARTS, divergence(log_p, target).mean(dim=0), strict=True))
        return whole_loss(action, batch, visual, self.weights)

    def predict(self, batch: Batch) -> FloatArray:
        """Likeliest actions, each token after the true ones before it."""
        log_p, _ = self._forward(batch, None)
        config = self.model.config
        ids = log_p.argmax(dim=-1).numpy() + config.action_token_range[0]
        normalized = decode_ids(ids, config.token_base, config.n_action_bins)
        return self.statistics.unnormalize(normalized).astype(np.float32)

    def save(self, folder: Path, weights: Mapping[str, Tensor]) -> None:
        """Write a checkpoint in OpenVLA's format."""
        save_model(folder, self.model_json, weights, self.tokenizer_json)

    def _forward(
        self, batch: Batch, rng: np.random.Generator | None
    ) -> tuple[Tensor, VisualTokens]:
        """Log-probabilities of the action ids ``(B, 7, bins)``, and what the tower saw."""
        pixels = given_pixels(batch, rng)
        config = self.model.config
        normalized = self.statistics.normalize(batch.action)
        ids = torch.from_numpy(encode_actions(normalized, config.token_base, config.n_action_bins))
        mask = None if self.prompt_mask is None else self.prompt_mask[batch.prompt]
        logits, visual = self.model(self.prompts[batch.prompt], pixels, ids, mask)
        low, high = config.action_token_range
        return torch.log_softmax(logits.float(), dim=-1)[..., low:high], visual


def _new_model_json(data: Demonstrations) -> dict[str, Any]:
    llm = LlamaSizes(
        vocab_size=WORD_SLOTS + 256 + PAD,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=256,
        pad_token_id=WORD_SLOTS + 256,
    )
    tower = GroundedConvConfig(image_size=data.image.shape[1])
    out = grounded_conv_json(tower, llm, pad_to_multiple_of=PAD)
    out["norm_stats"] = {
        DATA_NAME: {
            "action": action_statistics(data.action[data.train]),
            "num_transitions": len(data),
        }
    }
    return out


def _prompt_table(instructions: list[str], tokenizer: Any) -> tuple[Tensor, Tensor | None]:
    rows = [prompt_ids(tokenizer, text) for text in instructions]
    length = max(map(len, rows))
    ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows])
    return ids, None if bool(mask.all()) else mask
