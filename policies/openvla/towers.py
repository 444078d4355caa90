"""The pretrained vision towers, on transformers' own classes: DINOv2 with registers and SigLIP."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import (
    Dinov2WithRegistersConfig,
    Dinov2WithRegistersModel,
    SiglipVisionConfig,
    SiglipVisionModel,
)

from policies.openvla.config import ViTConfig

__all__ = ["REGISTERS", "VisionTowers"]

REGISTERS = 4


class VisionTowers(nn.Module):
    """One or two towers over the same image; their patch features are joined on channels."""

    def __init__(self, configs: tuple[ViTConfig, ...]) -> None:
        super().__init__()
        self.featurizer = _tower(configs[0])
        self.fused_featurizer = _tower(configs[1]) if len(configs) > 1 else None

    def forward(self, pixels: Tensor) -> Tensor:
        """Patch features.

        Args:
            pixels: three channels per tower, in the towers' order, ``(B, 3 * towers, S, S)``.

        Returns:
            Shape ``(B, patches, sum of widths)``.
        """
        towers = [self.featurizer]
        if self.fused_featurizer is not None:
            towers.append(self.fused_featurizer)
        parts = zip(towers, torch.split(pixels, 3, dim=1), strict=True)
        return torch.cat([patch_features(tower, part) for tower, part in parts], dim=-1)

    def fill_buffers(self) -> None:
        """Compute the indices that no checkpoint holds."""
        for tower in (self.featurizer, self.fused_featurizer):
            if isinstance(tower, SiglipVisionModel):
                count = tower.embeddings.position_embedding.num_embeddings
                index = torch.arange(count).unsqueeze(0)
                tower.embeddings.register_buffer("position_ids", index, persistent=False)


def patch_features(tower: nn.Module, pixels: Tensor) -> Tensor:
    """Patches after the last block but one, before any final norm, as OpenVLA takes them."""
    states = tower(pixel_values=pixels, output_hidden_states=True).hidden_states[-2]
    skip = 1 + REGISTERS if isinstance(tower, Dinov2WithRegistersModel) else 0
    out: Tensor = states[:, skip:]
    return out


def _tower(config: ViTConfig) -> nn.Module:
    tower: nn.Module
    if config.family == "dino":
        tower = Dinov2WithRegistersModel(
            Dinov2WithRegistersConfig(
                hidden_size=config.width,
                num_hidden_layers=config.depth,
                num_attention_heads=config.heads,
                mlp_ratio=config.mlp_width // config.width,
                image_size=config.image_size,
                patch_size=config.patch_size,
                num_register_tokens=REGISTERS,
                layer_norm_eps=1e-6,
            )
        )
    else:
        tower = SiglipVisionModel(
            SiglipVisionConfig(
                hidden_size=config.width,
                num_hidden_layers=config.depth,
                num_attention_heads=config.heads,
                intermediate_size=config.mlp_width,
                image_size=config.image_size,
                patch_size=config.patch_size,
                # timm's exact GELU; transformers' default is the tanh form.
                hidden_act="gelu",
                layer_norm_eps=1e-6,
                vision_use_head=False,
            )
        )
    return tower
