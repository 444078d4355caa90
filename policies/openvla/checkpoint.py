"""Reading and writing checkpoint folders: safetensors only, every key accounted for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from policies.checkpoint import (
    CheckpointError,
    TensorFiles,
    check_fit,
    read_tensors,
    stream_tensors,
)
from policies.json_file import as_config_error
from policies.openvla.config import OpenVLAConfig
from policies.openvla.keys import absent_tensors, native_tensors, to_native
from policies.openvla.model import OpenVLA
from policies.openvla.quantization import Quantizer

__all__ = ["CheckpointError", "check_fit", "load_model", "read_tensors", "save_model"]


def load_model(
    folder: Path,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
    quantization: str | None = None,
) -> OpenVLA:
    """Build the model of ``config.json`` and fill it with the folder's weights.

    Keys and shapes are checked before anything is read; then each tensor goes to its place by
    itself, so that no second copy of the model is ever in memory.

    Args:
        folder: with model.safetensors or its shards.
        dtype: dtype of the weights that are not quantised.
        device: Torch device.
        quantization: quantization of the language model, ``4bit`` or ``8bit``.

    Raises:
        CheckpointError: if a key is missing, left over, of the wrong shape or not finite.
        ConfigError: if no model can have the sizes of ``config.json``.
        MissingExtraError: if the quantiser is not installed.
    """
    config = OpenVLAConfig.from_folder(folder)
    with as_config_error(folder / "config.json"), torch.device("meta"):
        model = OpenVLA(config)
    quantize = None if quantization is None else Quantizer(quantization, dtype)
    with TensorFiles.opened(folder) as files:
        check_fit(model.state_dict(), to_native(files.described(), config))
    model.to(dtype)
    if quantize is not None:
        quantize.prepare(model)
    placed = {key: value.to(device, dtype) for key, value in absent_tensors(config).items()}
    for name, tensor in stream_tensors(folder, dtype):
        for key, value in native_tensors(name, tensor, config).items():
            if quantize is not None and quantize.takes(model, key):
                quantize.fill(model, key, value.to(device))
            else:
                placed[key] = value.to(device)
    model.load_state_dict(placed, strict=False, assign=True)
    model.fill_buffers()
    model.to(device)
    return model.eval().requires_grad_(requires_grad=False)


def save_model(
    folder: Path,
    model_config: Mapping[str, Any],
    state: Mapping[str, Tensor],
    tokenizer_json: str,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write config.json, model.safetensors and tokenizer.json; each file appears whole."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = folder / "model.safetensors"
    partial = weights.with_suffix(".partial")
    save_file({key: value.to(dtype).contiguous() for key, value in state.items()}, partial)
    partial.replace(weights)
    (folder / "config.json").write_text(json.dumps(model_config, indent=1) + "\n", encoding="utf-8")
    (folder / "tokenizer.json").write_text(tokenizer_json, encoding="utf-8")
