"""The language model in 4 or 8 bits, by the quantisers that transformers itself uses."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Final, final

import torch
from torch import Tensor, nn

from monitor.errors import ConfigError, MissingExtraError, unknown_name

__all__ = ["QUANTIZATIONS", "Quantizer"]

QUANTIZATIONS: Final = ("4bit", "8bit")
"""NormalFloat4 (Dettmers et al. 2023, QLoRA) and LLM.int8 (Dettmers et al. 2022)."""

_PART: Final = "language_model"


@final
class Quantizer:
    """Turns the linear layers of the language model into those of bitsandbytes.

    The vision towers, the projector and the output layer stay as they are: they are small, and the
    logits that the monitor reads come from the last.

    Args:
        name: one of :data:`QUANTIZATIONS`.
        dtype: dtype in which a 4-bit layer computes.

    Raises:
        ConfigError: if the name is unknown.
        MissingExtraError: if bitsandbytes is not installed.
    """

    def __init__(self, name: str, dtype: torch.dtype) -> None:
        if name not in QUANTIZATIONS:
            raise ConfigError(unknown_name("quantization", name, QUANTIZATIONS))
        if find_spec("bitsandbytes") is None:
            msg = f"quantization={name!r} needs bitsandbytes: pip install bitsandbytes"
            raise MissingExtraError(msg)
        from transformers import BitsAndBytesConfig
        from transformers.integrations.bitsandbytes import Bnb4bitQuantize, Bnb8bitQuantize

        four = name == "4bit"
        self._config = BitsAndBytesConfig(
            load_in_4bit=four,
            load_in_8bit=not four,
            bnb_4bit_compute_dtype=dtype,
            bnb_4bit_quant_type="nf4",
        )
        self._convert: Any = (Bnb4bitQuantize if four else Bnb8bitQuantize)(None).convert

    def prepare(self, model: nn.Module) -> None:
        """Replace the layers of a model on ``meta``."""
        from transformers.integrations.bitsandbytes import replace_with_bnb_linear

        replace_with_bnb_linear(
            model.get_submodule(_PART),
            modules_to_not_convert=["lm_head"],
            quantization_config=self._config,
        )

    def takes(self, model: nn.Module, key: str) -> bool:
        """Whether a tensor belongs to a layer that was replaced."""
        owner, _, leaf = key.rpartition(".")
        return leaf == "weight" and hasattr(model.get_submodule(owner), "source_cls")

    def fill(self, model: nn.Module, key: str, value: Tensor) -> None:
        """Quantise one weight where it lies and put it into its layer."""
        part, name = model.get_submodule(_PART), key.removeprefix(f"{_PART}.")
        owner, _, leaf = name.rpartition(".")
        quantized = self._convert({name: value}, model=part)[name]
        part.get_submodule(owner).register_parameter(leaf, quantized)
