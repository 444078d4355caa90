"""Loading a SpatialVLA checkpoint folder: every key accounted for, one tensor at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import torch
from torch import nn

from policies.checkpoint import CheckpointError, TensorFiles, check_fit
from policies.json_file import as_config_error
from policies.spatialvla.config import SpatialVLAConfig
from policies.spatialvla.keys import published_key
from policies.spatialvla.model import SpatialVLA

__all__ = ["load_model"]

_HEAD: Final = "language_model.lm_head.weight"


def load_model(folder: Path, dtype: torch.dtype = torch.float32, device: str = "cpu") -> SpatialVLA:
    """Build the model of ``config.json`` and fill it with the folder's weights.

    No tensor is ever random: the model is built on ``meta``, takes each tensor straight to its type
    and device, and must have taken all of them.

    Raises:
        CheckpointError: if a key is missing, left over, of the wrong shape or not finite; the
            text has the names of the checkpoint.
        ConfigError: if no model can have the sizes of ``config.json``.
    """
    config = SpatialVLAConfig.from_folder(folder)
    with as_config_error(folder / "config.json"), torch.device("meta"):
        model = SpatialVLA(config)
    tied = bool(config.text.tie_word_embeddings)
    native = {
        key: value for key, value in model.state_dict().items() if not (tied and key == _HEAD)
    }
    with TensorFiles.opened(folder, device) as files:
        check_fit({published_key(key): value for key, value in native.items()}, files.described())
        for key in native:
            # In memory of its own, which is aligned: what is mapped from a file may begin anywhere,
            # and then sums round in another way than those of a copy of the model.
            _put(model, key, files.read(published_key(key), dtype).clone())
    if tied:
        model.language_model.lm_head.weight = model.language_model.model.embed_tokens.weight
    model.finish_loading()
    _require_filled(model)
    return model.to(device).eval().requires_grad_(requires_grad=False)


def _put(model: nn.Module, key: str, value: torch.Tensor) -> None:
    path, _, name = key.rpartition(".")
    module = model.get_submodule(path)
    if name in module._parameters:
        setattr(module, name, nn.Parameter(value, requires_grad=False))
    else:
        setattr(module, name, value)


def _require_filled(model: nn.Module) -> None:
    named = [*model.named_parameters(), *model.named_buffers()]
    empty = [name for name, tensor in named if tensor.is_meta]
    if empty:
        msg = f"{len(empty)} tensors got no value: {'; '.join(empty[:8])}"
        raise CheckpointError(msg)
