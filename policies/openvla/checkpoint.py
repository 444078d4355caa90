"""Reading and writing checkpoint folders: safetensors only, every key accounted for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from monitor.errors import MonitorError
from policies.openvla.config import OpenVLAConfig
from policies.openvla.keys import to_native
from policies.openvla.model import OpenVLA

__all__ = ["CheckpointError", "check_fit", "load_model", "read_tensors", "save_model"]


class CheckpointError(MonitorError, ValueError):
    """A checkpoint does not fit its configuration; the text names the keys."""


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of ``model.safetensors``, or of the shards that its index lists.

    Raises:
        CheckpointError: if neither exists, or a shard is missing.
    """
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file():
        return dict(load_file(single))
    if not index.is_file():
        msg = f"{folder} holds neither model.safetensors nor model.safetensors.index.json"
        raise CheckpointError(msg)
    shards = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    tensors: dict[str, Tensor] = {}
    for name in shards:
        if not (folder / name).is_file():
            msg = f"{index.name} lists {name}, which is not in {folder}"
            raise CheckpointError(msg)
        tensors.update(load_file(folder / name))
    return tensors


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


def check_fit(wanted: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    """Refuse tensors that do not fill a model exactly.

    Raises:
        CheckpointError: naming keys that are missing, left over or of the wrong shape.
    """
    problems = [f"missing {key}" for key in wanted if key not in given]
    problems += [f"unexpected {key}" for key in given if key not in wanted]
    problems += [
        f"{key} has shape {tuple(given[key].shape)}, config.json asks for {tuple(value.shape)}"
        for key, value in wanted.items()
        if key in given and given[key].shape != value.shape
    ]
    if problems:
        shown = "; ".join(problems[:8])
        msg = f"{len(problems)} keys do not fit: {shown}"
        raise CheckpointError(msg)
