"""Number types that a model may be loaded in."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

import torch

from monitor.errors import ConfigError, MissingExtraError, unknown_name

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
        device: Torch device.
        allowed: those of them that the model takes.

    Raises:
        ConfigError: if there is none of this name, or no such device in torch.
        MissingExtraError: if this machine or this torch has no such device.

    >>> torch_dtype(None, "cpu"), torch_dtype(None, "meta")
    (torch.float32, torch.bfloat16)
    """
    kind = _usable_device(device).type
    if name is None:
        name = "float32" if kind == "cpu" else "bfloat16"
    if name not in DTYPES or name not in allowed:
        known = [one for one in DTYPES if one in allowed]
        raise ConfigError(unknown_name("dtype", name, known))
    return DTYPES[name]


def _usable_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        msg = f"device {name!r} is none of torch; give cpu, cuda, cuda:1 or mps"
        raise ConfigError(msg) from error
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if not torch.cuda.is_available() or (device.index or 0) >= count:
            msg = (
                f"device {name!r} is not there: torch {torch.__version__} sees {count} CUDA "
                "devices; "
                "give device='cpu', or install a torch that fits the driver"
            )
            raise MissingExtraError(msg)
    if device.type == "mps" and not torch.backends.mps.is_available():
        msg = f"device {name!r} is not there; give device='cpu'"
        raise MissingExtraError(msg)
    return device
