"""From the key names of published OpenVLA checkpoints (timm towers) to those of our modules."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from policies.openvla.config import OpenVLAConfig, ViTConfig

__all__ = ["absent_tensors", "native_tensors", "to_native"]

_DINO = {
    "cls_token": "embeddings.cls_token",
    "reg_token": "embeddings.register_tokens",
    "patch_embed.proj.weight": "embeddings.patch_embeddings.projection.weight",
    "patch_embed.proj.bias": "embeddings.patch_embeddings.projection.bias",
    "norm.weight": "layernorm.weight",
    "norm.bias": "layernorm.bias",
}
_SIGLIP = {
    "patch_embed.proj.weight": "embeddings.patch_embedding.weight",
    "patch_embed.proj.bias": "embeddings.patch_embedding.bias",
    "norm.weight": "post_layernorm.weight",
    "norm.bias": "post_layernorm.bias",
}
_DINO_BLOCK = {
    "norm1": "norm1",
    "norm2": "norm2",
    "attn.proj": "attention.o_proj",
    "mlp.fc1": "mlp.fc1",
    "mlp.fc2": "mlp.fc2",
}
_SIGLIP_BLOCK = {
    "norm1": "layer_norm1",
    "norm2": "layer_norm2",
    "attn.proj": "self_attn.out_proj",
    "mlp.fc1": "mlp.fc1",
    "mlp.fc2": "mlp.fc2",
}


def to_native(tensors: Mapping[str, Tensor], config: OpenVLAConfig) -> dict[str, Tensor]:
    """Rename and split all tensors of a checkpoint, and add what no checkpoint holds."""
    out: dict[str, Tensor] = {}
    for key, value in tensors.items():
        out.update(native_tensors(key, value, config))
    return {**absent_tensors(config), **out}


def native_tensors(key: str, value: Tensor, config: OpenVLAConfig) -> dict[str, Tensor]:
    """Rename and split one tensor of the towers; every other passes.

    A key that is not known keeps its name, so that the strict check can name it. SigLIP's pooling
    head is dropped: OpenVLA never uses it.
    """
    for prefix, tower in _tower_of(config).items():
        if key.startswith(prefix):
            renamed = _tower_key(key[len(prefix) :], value, tower)
            return {prefix + name: tensor for name, tensor in renamed.items()}
    return {key: value}


def absent_tensors(config: OpenVLAConfig) -> dict[str, Tensor]:
    """What transformers keeps and no checkpoint of OpenVLA has: tokens for masked training."""
    return {
        f"{prefix}embeddings.mask_token": torch.zeros(1, tower.width)
        for prefix, tower in _tower_of(config).items()
        if tower.family == "dino"
    }


def _tower_of(config: OpenVLAConfig) -> dict[str, ViTConfig]:
    parts = ("vision_backbone.featurizer.", "vision_backbone.fused_featurizer.")
    return dict(zip(parts, config.towers, strict=False))


def _tower_key(name: str, value: Tensor, tower: ViTConfig) -> dict[str, Tensor]:
    dino = tower.family == "dino"
    if name.startswith("blocks."):
        return _block_key(name, value, dino=dino)
    if name == "pos_embed":
        if not dino:
            return {"embeddings.position_embedding.weight": value[0]}
        # timm gives the class token no position.
        whole = torch.cat([torch.zeros_like(value[:, :1]), value], dim=1)
        return {"embeddings.position_embeddings": whole}
    if name.startswith("attn_pool.") and not dino:
        return {}
    return {(_DINO if dino else _SIGLIP).get(name, name): value}


def _block_key(name: str, value: Tensor, *, dino: bool) -> dict[str, Tensor]:
    _, number, rest = name.split(".", 2)
    base = f"encoder.layer.{number}." if dino else f"encoder.layers.{number}."
    part, _, kind = rest.rpartition(".")
    if part == "attn.qkv":
        attention = "attention" if dino else "self_attn"
        split = value.chunk(3, dim=0)
        return {
            f"{base}{attention}.{letter}_proj.{kind}": piece.contiguous()
            for letter, piece in zip("qkv", split, strict=True)
        }
    if rest in ("ls1.scale_factor", "ls2.scale_factor", "ls1.gamma", "ls2.gamma") and dino:
        return {f"{base}layer_scale{rest[2]}.lambda1": value}
    known = _DINO_BLOCK if dino else _SIGLIP_BLOCK
    return {f"{base}{known[part]}.{kind}" if part in known else name: value}
