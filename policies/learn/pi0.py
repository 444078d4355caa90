"""``pi0-mini`` in training: flow matching on chunks of actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.normalizers import Lowercase
from tokenizers.processors import TemplateProcessing
from torch import Tensor, nn
from transformers import PI0ForConditionalGeneration

from policies.json_file import read_json
from policies.learn.dataset import Batch, Demonstrations, FloatArray
from policies.learn.feature_cache import FeatureCache
from policies.learn.folder import write_folder
from policies.learn.frozen_encoder import FrozenEncoder
from policies.learn.losses import Losses
from policies.learn.vocabulary import WORD_SLOTS
from policies.openvla.config import GroundedConvConfig
from policies.openvla.prompt import build_prompt
from policies.pi0.checkpoint import build_model, fill_buffers, load_model
from policies.pi0.config import Layout, config_of, read_config
from policies.pi0.flow import Prefix, integrate, join, read_prefix, velocity
from policies.pi0.keys import HEAD
from policies.pi0.statistics import Affine, affine

__all__ = ["TrainablePI0"]

ACTION_DIM: Final = 7
DRAWS: Final = 4
"""Draws of noise and time per image, which is encoded once."""
EXPERT_WIDTH: Final = 96
LEAST_STD: Final = 0.02
"""Lower bound on the standard deviation of a rotation, radians."""
TIME: Final = (1.5, 1.0, 0.999, 0.001)
"""Beta distribution of the times in training, their factor and offset (Black et al. 2024)."""
GRIPPER: Final = 0.95
"""What the gripper's 1 and -1 become: a flow overshoots, and beyond 1 there is no action."""
LATER_WEIGHT: Final = 0.5
"""Loss weight of the actions of a chunk after the first, the only one that is executed."""


@final
class TrainablePI0:
    """A new small model, or one from a checkpoint folder.

    Its vision encoder is that of ``openvla-mini`` and stays frozen.

    Args:
        data: what it learns from.
        init: folder to go on from; None starts from scratch.
        features: features of the demonstrations.
    """

    def __init__(self, data: Demonstrations, init: Path | None, features: FeatureCache) -> None:
        encoder = FrozenEncoder()
        self.features = features
        self.tokenizer = questioning(encoder.tokenizer)
        if init is None:
            self.model_json = _model_json(encoder, data.horizon)
            self.processor_json = _processor_json(data)
            self.model = _new_model(self.model_json, encoder)
        else:
            self.model_json = read_json(init / "config.json")
            self.processor_json = read_json(init / "processor_config.json")
            config = read_config(init)
            self.model = load_model(init, config.model, tower=config.grounded_conv).model
        mean, std = (self.processor_json[f"actions_{name}"] for name in ("mean", "std"))
        self.scaling: Affine = affine(
            "MEAN_STD", {"mean": mean, "std": std}, layout=Layout.TRANSFORMERS
        )
        self.prompts = torch.tensor([encoder.ids(text) for text in data.instructions])
        self.steps = int(self.model_json["num_inference_steps"])

    def groups(self) -> list[dict[str, Any]]:
        """Everything but the tower, and the words, which the tower reads as they are."""
        kept = ("model.vlm.vision_tower.", "model.vlm.language_model.embed_tokens.")
        learned = [one for name, one in self.model.named_parameters() if not name.startswith(kept)]
        for one in learned:
            one.requires_grad = True
        return [{"params": learned}]

    def losses(
        self, batch: Batch, rng: np.random.Generator, *, progress: float, augment: bool
    ) -> Losses:
        """Squared error of the velocity at random times between noise and the expert's chunk."""
        seen, _ = self.features.pick(batch.rows, batch.other, rng if augment else None)
        prefix = self._prefix(seen, batch.prompt)
        prefix.cache.batch_repeat_interleave(DRAWS)
        plans = torch.from_numpy(self.scaling.normalize(_safe(batch.chunk)).astype(np.float32))
        plans = plans.repeat_interleave(DRAWS, dim=0)
        weight = torch.from_numpy(batch.known.astype(np.float32))
        weight[:, 1:] *= LATER_WEIGHT
        weight = weight.repeat_interleave(DRAWS, dim=0)
        alpha, beta, factor, offset = TIME
        drawn = rng.beta(alpha, beta, len(plans)) * factor + offset
        time = torch.from_numpy(drawn.astype(np.float32))
        noise = torch.from_numpy(rng.standard_normal(plans.shape).astype(np.float32))
        mixed = time[:, None, None] * noise + (1.0 - time[:, None, None]) * plans
        states = plans.new_zeros(len(plans), int(self.model.config.max_state_dim))
        field, _ = velocity(self.model, prefix, states, mixed, time)
        square = (field.float() - (noise - plans)).square()
        each = (square * weight[..., None]).sum(dim=(0, 1)) / weight.sum()
        parts = {
            "translation": each[:3].mean(),
            "rotation": each[3:6].mean(),
            "gripper": each[6],
        }
        return Losses(
            total=each.mean(), parts={name: float(one.detach()) for name, one in parts.items()}
        )

    def predict(self, batch: Batch) -> FloatArray:
        """First actions of plans from one draw of noise each."""
        seen, _ = self.features.pick(batch.rows, batch.other, None)
        noise = np.random.default_rng(0).standard_normal(batch.chunk.shape).astype(np.float32)
        states = seen.new_zeros(len(seen), int(self.model.config.max_state_dim))
        prefix = self._prefix(seen, batch.prompt)
        flow = integrate(self.model, prefix, states, torch.from_numpy(noise), self.steps)
        return self.scaling.unnormalize(flow.actions[:, 0].numpy()).astype(np.float32)

    def save(self, folder: Path, weights: Mapping[str, Tensor]) -> None:
        """Write a checkpoint under transformers' names, in half precision."""
        # The expert's language head, which no action needs, as openpi's converter leaves it.
        named = {**weights, HEAD: torch.zeros(WORD_SLOTS, EXPERT_WIDTH)}
        files = {"config": self.model_json, "processor_config": self.processor_json}
        write_folder(folder, named, files, self.tokenizer)

    def _prefix(self, seen: Tensor, prompt: Any) -> Prefix:
        words = self.model.model.vlm.get_input_embeddings()(self.prompts[prompt])
        return read_prefix(self.model, join(self.model, seen, words))


def questioning(tokenizer: Tokenizer) -> Tokenizer:
    """A tokenizer that puts OpenVLA's question around an instruction, as BOS is put before it.

    π0 is given the bare instruction; the vision encoder was trained with the question in lower
    case.
    """
    out = Tokenizer.from_str(tokenizer.to_str())
    out.normalizer = Lowercase()
    before, after = build_prompt("\0").split("\0")
    special = []
    for name, part in (("<before>", before), ("<after>", after)):
        words = tokenizer.encode(part, add_special_tokens=False)
        special.append({"id": name, "ids": words.ids, "tokens": words.tokens})
    out.post_processor = TemplateProcessing(
        single="<s> <before> $A <after>",
        special_tokens=[("<s>", tokenizer.token_to_id("<s>")), *special],
    )
    return out


def _new_model(
    model_json: Mapping[str, Any], encoder: FrozenEncoder
) -> PI0ForConditionalGeneration:
    config = config_of(model_json)
    model = build_model(config.model, encoder.config)
    model.model.dit.embed_tokens = None
    model.to_empty(device="cpu")
    fill_buffers(model, "cpu")
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            module.reset_parameters()
        elif name.endswith("norm"):
            nn.init.zeros_(module.weight)
    table = model.model.vlm.language_model.embed_tokens
    nn.init.zeros_(table.weight)
    encoder.spell(table, table.embed_scale)
    model.model.vlm.vision_tower.load_state_dict(encoder.tower.state_dict())
    return model.requires_grad_(requires_grad=False)


def _safe(actions: FloatArray) -> FloatArray:
    """Actions ``(..., 7)`` whose gripper keeps away from the ends of its range."""
    out = actions.copy()
    out[..., -1] *= GRIPPER
    return out


def _processor_json(data: Demonstrations) -> dict[str, Any]:
    flat = _safe(data.action[data.train]).reshape(-1, ACTION_DIM).astype(np.float64)
    std = flat.std(axis=0)
    std[3:6] = np.maximum(std[3:6], LEAST_STD)
    return {
        "actions_mean": flat.mean(axis=0).tolist(),
        "actions_std": std.tolist(),
        "state_mean": [0.0],
        "state_std": [1.0],
    }


def _model_json(encoder: FrozenEncoder, horizon: int) -> dict[str, Any]:
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4}
    sizes |= {"head_dim": 32, "vocab_size": WORD_SLOTS, "max_position_embeddings": 128}
    special = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    return {
        "model_type": "pi0",
        "chunk_size": horizon,
        "max_state_dim": 1,
        "max_action_dim": ACTION_DIM,
        "num_inference_steps": 10,
        "grounded_conv": asdict(encoder.config),
        "vlm_config": {
            "model_type": "paligemma",
            "image_token_id": WORD_SLOTS,
            "projection_dim": encoder.width,
            "text_config": {
                "model_type": "gemma",
                "hidden_size": encoder.width,
                "intermediate_size": 256,
                **sizes,
                **special,
            },
            "vision_config": _stand_in(encoder.config),
        },
        "dit_config": {
            "model_type": "gemma",
            "hidden_size": EXPERT_WIDTH,
            "intermediate_size": 256,
            **sizes,
            **special,
        },
    }


def _stand_in(tower: GroundedConvConfig) -> dict[str, Any]:
    """The smallest SigLIP, which transformers must have before the small tower takes its place."""
    return {
        "model_type": "siglip_vision_model",
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "image_size": tower.image_size,
        "patch_size": tower.patch_size,
        "vision_use_head": False,
    }
