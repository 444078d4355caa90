"""What the published openvla-7b says about its own sizes, to build or to compute without it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

__all__ = ["OPENVLA_7B"]

OPENVLA_7B: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "model_type": "openvla",
        "timm_model_ids": [
            "vit_large_patch14_reg4_dinov2.lvd142m",
            "vit_so400m_patch14_siglip_224",
        ],
        "image_sizes": [224, 224],
        "use_fused_vision_backbone": True,
        "text_config": {"model_type": "llama", "pad_token_id": 32000, "vocab_size": 32064},
        "pad_to_multiple_of": 64,
    }
)
"""``config.json`` of ``openvla/openvla-7b``, without statistics."""
