"""Tensors in a checkpoint folder: safetensors only, read one by one, every key accounted for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from monitor.errors import MonitorError

__all__ = [
    "CheckpointError",
    "TensorFiles",
    "check_fit",
    "read_tensors",
    "stream_tensors",
    "tensor_files",
]


class CheckpointError(MonitorError, ValueError):
    """A checkpoint does not fit its configuration; the text names the keys."""


def tensor_files(folder: Path) -> list[Path]:
    """``model.safetensors``, or the shards that its index lists.

    Raises:
        CheckpointError: if neither exists, or a shard is missing.
    """
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file():
        return [single]
    if not index.is_file():
        msg = f"{folder} holds neither model.safetensors nor model.safetensors.index.json"
        raise CheckpointError(msg)
    names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
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
        self._file_of = {name: one for one in files for name in one.keys()}  # noqa: SIM118  no dict

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
        """Tensors on ``meta`` by key: their shapes, without reading any."""
        return {
            name: torch.empty(one.get_slice(name).get_shape(), device="meta")
            for name, one in self._file_of.items()
        }

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """One tensor; floating ones come in ``dtype``."""
        return _floating(self._file_of[name].get_tensor(name), dtype)


def stream_tensors(folder: Path, dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """Tensors one by one, floating ones in ``dtype``; one file is open at a time.

    Raises:
        CheckpointError: as :func:`tensor_files`.
    """
    for path in tensor_files(folder):
        with _opened(path) as file:
            for name in file.keys():  # noqa: SIM118  no dict
                yield name, _floating(file.get_tensor(name), dtype)


def _opened(path: Path, device: str | torch.device = "cpu") -> Any:
    try:
        return safe_open(path, framework="pt", device=str(device))
    except SafetensorError as error:
        msg = (
            f"{path} is no whole safetensors file ({error}); it holds {path.stat().st_size} bytes: "
            "copy it again, and see that it is no Git LFS pointer"
        )
        raise CheckpointError(msg) from error


def _floating(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def check_fit(wanted: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    """Refuse tensors that do not fill a model exactly; only their shapes are looked at.

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
        msg = f"{len(problems)} keys do not fit: {'; '.join(problems[:8])}"
        raise CheckpointError(msg)
