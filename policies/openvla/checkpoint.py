"""Reading and writing checkpoint folders: safetensors only, every key accounted for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from policies.checkpoint import CheckpointError, check_fit, read_tensors
from policies.openvla.config import OpenVLAConfig
from policies.openvla.keys import to_native
from policies.openvla.model import OpenVLA

__all__ = ["CheckpointError", "check_fit", "load_model", "read_tensors", "save_model"]


def load_model(folder: Path, dtype: torch.dtype = torch.float32) -> OpenVLA:
    """Build the model of ``config.json`` and fill it with the folder's weights.

    Raises:
        CheckpointError: if a key is missing, left over or of the wrong shape.
    """
    config = OpenVLAConfig.from_folder(folder)
    tensors = read_tensors(folder)
    with torch.device("meta"):
        model = OpenVLA(config)
    if config.grounded_conv is None:
        tensors = to_native(tensors, config)
    wanted = model.state_dict()
    check_fit(wanted, tensors)
    model.to(dtype)
    model.load_state_dict({key: value.to(dtype) for key, value in tensors.items()}, assign=True)
    model.fill_buffers()
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
