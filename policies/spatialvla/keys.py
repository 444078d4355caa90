"""From the key names of our modules to those of published SpatialVLA checkpoints.

The vision parts are transformers' own, whose names have changed since the checkpoints were written;
all other names are the same.
"""

from __future__ import annotations

from typing import Final

__all__ = ["published_key"]

_BEIT_LAYER: Final = {
    "attention.q_proj": "attention.attention.query",
    "attention.k_proj": "attention.attention.key",
    "attention.v_proj": "attention.attention.value",
    "attention.o_proj": "attention.output.dense",
    "relative_position_bias": "attention.attention.relative_position_bias",
    "mlp.fc1": "intermediate.dense",
    "mlp.fc2": "output.dense",
}
_BEIT: Final = "vision_zoe_model.backbone.beit."
_BEIT_PUBLISHED: Final = "vision_zoe_model.backbone."


def published_key(native: str) -> str:
    """The name that a published checkpoint has for a tensor of ours.

    >>> published_key("vision_tower.encoder.layers.0.mlp.fc1.bias")
    'vision_tower.vision_model.encoder.layers.0.mlp.fc1.bias'
    >>> published_key("vision_zoe_model.backbone.beit.layers.3.attention.o_proj.bias")
    'vision_zoe_model.backbone.encoder.layer.3.attention.output.dense.bias'
    """
    tower, dot, rest = native.partition(".")
    if tower == "vision_tower":
        return f"{tower}{dot}vision_model.{rest}"
    if not native.startswith(_BEIT):
        return native
    name = native[len(_BEIT) :]
    if not name.startswith("layers."):
        return _BEIT_PUBLISHED + name
    _, number, inner = name.split(".", 2)
    part, dot, kind = inner.rpartition(".")
    return f"{_BEIT_PUBLISHED}encoder.layer.{number}.{_BEIT_LAYER.get(part, part)}{dot}{kind}"
