"""The file of a trained probe: one ``.npz`` with a JSON header, checked when it is read.

| array | shape, type | meaning |
| --- | --- | --- |
| header | () str | JSON of :class:`ProbeHeader` |
| weight_1, bias_1 | (H, F), (H,) float32 | first layer; the features' scaling is folded in |
| weight_2, bias_2 | (H,), () float32 | second layer |
| band | (T,) float64 | upper band of the score after 1, 2, … T features |
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from monitor.errors import ConfigError
from monitor.records import FloatArray

__all__ = ["ProbeFile", "ProbeHeader"]


class ProbeHeader(BaseModel):
    """What a probe is for and how it was made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["vlawatch-safe-mlp-1"] = "vlawatch-safe-mlp-1"
    policy: str
    env: str
    features: int = Field(ge=1)
    """F, numbers of a step."""
    units: int = Field(ge=1)
    """H, of the inner layer."""
    horizon: int = Field(ge=1)
    """T, steps of the band."""
    alpha: float = Field(gt=0, lt=1)
    """Promised rate of successful episodes that leave the band."""
    n_train: int = Field(ge=1)
    """Episodes that the network was trained on."""
    n_band: int = Field(ge=1)
    """Successful episodes of the band."""
    training: dict[str, float]
    """Settings of the training, seed included."""
    revision: str | None = None
    """Commit that recorded the first run."""
    created_from: tuple[str, ...] = ()
    """Runs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProbeFile:
    """A trained probe; arrays as in the table above."""

    header: ProbeHeader
    weight_1: NDArray[np.float32]
    bias_1: NDArray[np.float32]
    weight_2: NDArray[np.float32]
    bias_2: NDArray[np.float32]
    band: FloatArray

    def __post_init__(self) -> None:
        """Hold the arrays to the header.

        Raises:
            ConfigError: a shape or type differs, or a number is not finite.
        """
        f, h, t = self.header.features, self.header.units, self.header.horizon
        shapes = {"weight_1": (h, f), "bias_1": (h,), "weight_2": (h,), "bias_2": (), "band": (t,)}
        for name, shape in shapes.items():
            array = getattr(self, name)
            kind = np.dtype(np.float64 if name == "band" else np.float32)
            if array.shape != shape or array.dtype != kind:
                msg = f"{name} is {array.shape} {array.dtype}, expected {shape} {kind}"
                raise ConfigError(msg)
            if not np.isfinite(array).all():
                msg = f"{name} is not finite"
                raise ConfigError(msg)

    def save(self, path: Path | str) -> None:
        """Write the file in one piece."""
        target = Path(path)
        draft = target.with_name(target.name + ".part")
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        with draft.open("wb") as file:
            np.savez_compressed(file, header=np.array(self.header.model_dump_json()), **arrays)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)

    @classmethod
    def load(cls, path: Path | str) -> ProbeFile:
        """Read a file.

        Raises:
            ConfigError: no such file, or not a probe's.
        """
        try:
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as held:
                header = ProbeHeader.model_validate_json(str(held["header"]))
                return cls(header=header, **{name: held[name] for name in _ARRAYS})
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
            text = _short(error) if isinstance(error, ValidationError) else str(error)
            msg = f"cannot read the probe {path}: {text}; `vlawatch safe` makes one"
            raise ConfigError(msg) from error


_ARRAYS = ("weight_1", "bias_1", "weight_2", "bias_2", "band")


def _short(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(str(part) for part in one['loc']) or 'header'}: {one['msg']}"
        for one in error.errors()
    )
