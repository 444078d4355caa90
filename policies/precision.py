"""Number types that a model may be loaded in."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

import torch

from monitor.errors import ConfigError, unknown_name

__all__ = ["DTYPES", "torch_dtype"]

DTYPES: Final = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def torch_dtype(
    name: str | None, device: str = "cpu", *, allowed: Container[str] = DTYPES
) -> torch.dtype:
    """The type of an option ``dtype=``; None takes float32 on a CPU and bfloat16 elsewhere.

    Args:
        name: one of :data:`DTYPES`, or None.
        device: of torch.
        allowed: those of them that the model takes.

    Raises:
        ConfigError: if there is none of this name.

    >>> torch_dtype(None, "cpu"), torch_dtype(None, "cuda:0")
    (torch.float32, torch.bfloat16)
    """
    if name is None:
        name = "float32" if torch.device(device).type == "cpu" else "bfloat16"
    if name not in DTYPES or name not in allowed:
        known = [one for one in DTYPES if one in allowed]
        raise ConfigError(unknown_name("dtype", name, known))
    return DTYPES[name]
