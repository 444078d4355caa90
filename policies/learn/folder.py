"""Leaving a checkpoint folder behind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

__all__ = ["write_folder"]


def write_folder(
    folder: Path,
    tensors: Mapping[str, Tensor],
    settings: Mapping[str, Mapping[str, Any]],
    tokenizer: Tokenizer,
) -> None:
    """Write weights in half precision, JSON files and the tokenizer; the weights appear whole.

    Args:
        folder: is made if need be.
        tensors: tensors by the names that the checkpoint has for them.
        settings: contents of JSON files by their names without ending.
        tokenizer: tokenizer of the policy.
    """
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / "model.partial"
    save_file({name: one.half().contiguous() for name, one in tensors.items()}, partial)
    partial.replace(folder / "model.safetensors")
    for name, data in settings.items():
        text = json.dumps(data, indent=1) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
