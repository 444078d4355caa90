"""Sizes of the language model, from ``text_config`` of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from monitor.errors import ConfigError

__all__ = ["LlamaSizes", "llama_sizes"]

_PLAIN: Final[Mapping[str, Any]] = {
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "rope_scaling": None,
    "tie_word_embeddings": False,
}
"""What would change the numbers without changing a shape: other values are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaSizes:
    """Sizes of the language model; the defaults are Llama-2-7B with OpenVLA's vocabulary."""

    vocab_size: int = 32064
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int = 32
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    pad_token_id: int = 32000
    bos_token_id: int = 1
    eos_token_id: int = 2


def llama_sizes(text: Mapping[str, Any]) -> LlamaSizes:
    """Sizes of a ``text_config``; what is not set keeps Llama-2-7B's value.

    Raises:
        ConfigError: if it sets something that would change the numbers and is not supported.
    """
    rope = text.get("rope_parameters") or {}
    known = {one.name for one in fields(LlamaSizes)}
    sizes = {key: value for key, value in text.items() if key in known and value is not None}
    if "num_attention_heads" in sizes:
        sizes.setdefault("num_key_value_heads", sizes["num_attention_heads"])
    if "rope_theta" in rope:
        sizes.setdefault("rope_theta", rope["rope_theta"])
    llm = LlamaSizes(**sizes)
    plain = {
        **_PLAIN,
        "head_dim": llm.hidden_size // llm.num_attention_heads,
        "rope_parameters": {**rope, "rope_type": "default"},
    }
    for key, value in plain.items():
        if text.get(key) is not None and text[key] != value:
            msg = f"text_config.{key} is {text[key]!r}; only {value!r} is supported"
            raise ConfigError(msg)
    return llm
