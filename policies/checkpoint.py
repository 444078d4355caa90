"""Tensors in a checkpoint folder: safetensors only, read one by one, every key accounted for."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from monitor.errors import MonitorError
from policies.json_file import read_json

__all__ = [
    "CheckpointError",
    "TensorFiles",
    "check_fit",
    "read_tensors",
    "stream_tensors",
    "tensor_files",
]


_FLOATS: Final = ("F64", "F32", "F16", "BF16")
"""Number types of safetensors that weights may have; eight bits mean nothing without a scale."""


class CheckpointError(MonitorError, ValueError):
    """A checkpoint does not fit its configuration; the text names the keys."""


def tensor_files(folder: Path) -> list[Path]:
    """``model.safetensors``, or the shards that its index lists.

    Raises:
        CheckpointError: if neither exists, a shard is missing, or the index lists no files.
        ConfigError: if the index is not a JSON object.
    """
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file():
        return [single]
    if not index.is_file():
        msg = f"{folder} holds neither model.safetensors nor model.safetensors.index.json"
        raise CheckpointError(msg)
    listed = read_json(index).get("weight_map")
    if not isinstance(listed, dict) or not all(isinstance(name, str) for name in listed.values()):
        msg = f"{index} has no weight_map of file names by key; copy it again"
        raise CheckpointError(msg)
    names = sorted(set(listed.values()))
    for name in names:
        if not (folder / name).is_file():
            msg = f"{index.name} lists {name}, which is not in {folder}"
            raise CheckpointError(msg)
    return [folder / name for name in names]


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder at once; :class:`TensorFiles` takes less memory.

    Raises:
        CheckpointError: as :func:`tensor_files`.
    """
    tensors: dict[str, Tensor] = {}
    for path in tensor_files(folder):
        with _opened(path) as file:
            tensors.update({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    return tensors


class TensorFiles:
    """Open files of a checkpoint; a tensor is read when it is asked for, straight to its device.

    Args:
        files: safetensors files by their open handle, from :meth:`opened`.
    """

    def __init__(self, files: list[Any]) -> None:
        self._file_of: dict[str, Any] = {}
        for one in files:
            for name in one.keys():  # noqa: SIM118  no dict
                _require_new(name, self._file_of)
                self._file_of[name] = one

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, device: str | torch.device = "cpu") -> Iterator[TensorFiles]:
        """Open the files of a folder.

        Raises:
            CheckpointError: as :func:`tensor_files`.
        """
        paths = tensor_files(folder)
        yield cls([_opened(path, device) for path in paths])

    def described(self) -> dict[str, Tensor]:
        """Tensors on ``meta`` by key: their shapes, and whether they are numbers with a point."""
        described = {}
        for name, one in self._file_of.items():
            part = one.get_slice(name)
            kind = torch.float32 if part.get_dtype() in _FLOATS else torch.int8
            described[name] = torch.empty(part.get_shape(), dtype=kind, device="meta")
        return described

    def read(self, name: str, dtype: torch.dtype, *, finite: bool = True) -> Tensor:
        """One tensor; floating ones come in ``dtype``.

        Args:
            name: its key.
            dtype: dtype of floating-point tensors.
            finite: refuse a NaN or an infinity.

        Raises:
            CheckpointError: if it holds a NaN or an infinity and ``finite`` asks.
        """
        tensor = self._file_of[name].get_tensor(name)
        return _usable(name, tensor, dtype) if finite else tensor.to(dtype)


def stream_tensors(folder: Path, dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """Tensors one by one, floating ones in ``dtype``; one file is open at a time.

    Raises:
        CheckpointError: as :func:`tensor_files`, if two files hold the same key, or if a tensor
            holds a NaN or an infinity.
    """
    seen: set[str] = set()
    for path in tensor_files(folder):
        with _opened(path) as file:
            for name in file.keys():  # noqa: SIM118  no dict
                _require_new(name, seen)
                seen.add(name)
                yield name, _usable(name, file.get_tensor(name), dtype)


def _opened(path: Path, device: str | torch.device = "cpu") -> Any:
    try:
        return safe_open(path, framework="pt", device=str(device))
    except SafetensorError as error:
        msg = (
            f"{path} is not a complete safetensors file ({error}); it holds "
            f"{path.stat().st_size} bytes: "
            "copy it again, and check that it is not a Git LFS pointer"
        )
        raise CheckpointError(msg) from error


def _require_new(name: str, seen: Container[str]) -> None:
    if name in seen:
        msg = f"two files of the checkpoint hold {name}; it is unclear which one is meant"
        raise CheckpointError(msg)


def _usable(name: str, tensor: Tensor, dtype: torch.dtype) -> Tensor:
    if not tensor.is_floating_point():
        return tensor
    tensor = tensor.to(dtype)
    # The sum is one pass without a copy; only where it is not finite is every number looked at.
    if not bool(torch.isfinite(tensor.sum())) and not bool(torch.isfinite(tensor).all()):
        msg = f"{name} holds a NaN or an infinity in {dtype}; the checkpoint is damaged"
        raise CheckpointError(msg)
    return tensor


def check_fit(wanted: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    """Refuse tensors that do not fill a model exactly; their values are not looked at.

    Raises:
        CheckpointError: naming keys that are missing, left over, of the wrong shape or of a type
            that is none of a weight.
    """
    problems = [f"missing {key}" for key in wanted if key not in given]
    problems += [f"unexpected {key}" for key in given if key not in wanted]
    problems += [
        f"{key} has shape {tuple(given[key].shape)}, config.json asks for {tuple(value.shape)}"
        for key, value in wanted.items()
        if key in given and given[key].shape != value.shape
    ]
    problems += [
        f"{key} has a number type that is none of {', '.join(_FLOATS)}"
        for key, value in wanted.items()
        if key in given and value.is_floating_point() and not given[key].is_floating_point()
    ]
    if problems:
        msg = f"{len(problems)} keys do not fit: {'; '.join(problems[:8])}"
        raise CheckpointError(msg)
