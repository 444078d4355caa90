"""What an answer costs a model that is too large to run here: computed from its sizes alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from monitor.errors import ConfigError
from policies.openvla.config import LlamaSizes, OpenVLAConfig, ViTConfig
from policies.openvla.model import OpenVLA
from policies.openvla.towers import REGISTERS

__all__ = ["AnswerCost", "answer_cost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCost:
    """Cost of one answer: the image, the prompt, the greedy tokens and the samples.

    Attributes:
        flops: FLOPs of the matrix products, a multiplication and an addition counting as two.
        traffic_bytes: weights and cached keys and values that pass between memory and processor,
            each weight once a pass.
        cache_bytes: memory that keys and values of all rows take at the end.
    """

    flops: float
    traffic_bytes: float
    cache_bytes: float


def answer_cost(
    config: OpenVLAConfig,
    *,
    samples: int = 0,
    tokens: int = 7,
    prompt_tokens: int = 20,
    bytes_per_number: int = 2,
) -> AnswerCost:
    """Compute the cost of :meth:`policies.openvla.model.OpenVLA.decode` for one image.

    Args:
        config: configuration of a model with pretrained towers.
        samples: rows in addition to the greedy one.
        tokens: tokens of an action.
        prompt_tokens: prompt tokens of the text, BOS included.
        bytes_per_number: bytes per number of weights and cache; 2 for bfloat16.

    Raises:
        ConfigError: for the small tower, which is quick enough to be timed.
    """
    if config.grounded_conv is not None:
        msg = "only models with pretrained towers are supported; time the small one instead"
        raise ConfigError(msg)
    rows, prefix, llm = 1 + samples, config.visual_tokens + prompt_tokens, config.llm
    with torch.device("meta"):
        model = OpenVLA(config)
    once = _weights(model.vision_backbone) + _weights(model.projector)
    language = _weights(model.language_model.model.layers) + _weights(model.language_model.lm_head)

    flops = float(sum(_tower_flops(tower) for tower in config.towers))
    flops += 2.0 * config.visual_tokens * _weights(model.projector)
    flops += _llama_flops(llm, rows=1, new=prefix, seen=prefix)
    flops += tokens * rows * 2.0 * llm.hidden_size * llm.vocab_size
    for step in range(1, tokens):
        flops += _llama_flops(llm, rows=rows, new=1, seen=prefix + step)

    head_width = llm.hidden_size // llm.num_attention_heads
    position = 2 * llm.num_hidden_layers * llm.num_key_value_heads * head_width
    seen = sum(prefix + step for step in range(1, tokens))
    copied = rows * prefix if samples else 0
    numbers = once + tokens * language + position * (prefix + copied + rows * seen)
    return AnswerCost(
        flops=flops,
        traffic_bytes=float(numbers * bytes_per_number),
        cache_bytes=float(position * rows * (prefix + tokens - 1) * bytes_per_number),
    )


def _weights(module: nn.Module) -> int:
    """Numbers in the matrices of a module; biases and norms do not count."""
    return sum(one.numel() for one in module.parameters() if one.ndim > 1)


def _tower_flops(tower: ViTConfig) -> float:
    length = tower.patches + (1 + REGISTERS if tower.family == "dino" else 0)
    width = tower.width
    stem = 2.0 * tower.patches * 3 * tower.patch_size**2 * width
    block = 2.0 * length * (4 * width**2 + 2 * width * tower.mlp_width) + 4.0 * length**2 * width
    return stem + tower.depth * block


def _llama_flops(llm: LlamaSizes, *, rows: int, new: int, seen: int) -> float:
    """A pass of ``new`` tokens a row that look at ``seen``, without the output layer."""
    width = llm.hidden_size
    keys = width // llm.num_attention_heads * llm.num_key_value_heads
    matrices = 2 * width**2 + 2 * width * keys + 3 * width * llm.intermediate_size
    layer = rows * new * (2.0 * matrices + 4.0 * seen * width)
    return llm.num_hidden_layers * layer
