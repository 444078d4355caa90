"""Number types that a model may be loaded in."""

from __future__ import annotations

from typing import Final

import torch

from monitor.errors import ConfigError, unknown_name

__all__ = ["DTYPES", "torch_dtype"]

DTYPES: Final = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def torch_dtype(name: str) -> torch.dtype:
    """The type of an option ``dtype=``.

    Raises:
        ConfigError: if there is none of this name.
    """
    if name not in DTYPES:
        raise ConfigError(unknown_name("dtype", name, DTYPES))
    return DTYPES[name]
