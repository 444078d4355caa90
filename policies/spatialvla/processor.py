"""Images for the model, by Pillow and NumPy alone, equal to upstream's bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from monitor.errors import ConfigError
from policies.image import rgb_image
from policies.json_file import as_config_error, read_json

__all__ = ["ImageProcessor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageProcessor:
    """Resize and scale; SpatialVLA's model normalises on its own.

    Attributes:
        width: pixels.
        height: pixels.
        resample: Pillow's number of the interpolation, 3 is bicubic.
        factor: factor on the 0..255 of the image.
        mean: per channel; None where the image is not normalised here.
        std: per channel.
    """

    width: int
    height: int
    resample: int = 3
    factor: float = 1 / 255
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None

    @classmethod
    def from_folder(cls, folder: Path, side: int) -> ImageProcessor:
        """Read ``preprocessor_config.json``; without it, plain pixels in [0, 1] of ``side``."""
        path = folder / "preprocessor_config.json"
        if not path.is_file():
            return cls(width=side, height=side)
        with as_config_error(path):
            return cls.from_json(read_json(path))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ImageProcessor:
        """Read a parsed ``preprocessor_config.json``.

        Raises:
            ConfigError: if it does not resize and scale to one size.
        """
        size = data.get("size") or {}
        if not data.get("do_resize", True) or not {"width", "height"} <= set(size):
            msg = f"preprocessor_config.json must resize to a width and a height, got size {size}"
            raise ConfigError(msg)
        normalise = bool(data.get("do_normalize", True))
        scale = float(data.get("rescale_factor", 1 / 255))
        return cls(
            width=int(size["width"]),
            height=int(size["height"]),
            resample=int(data.get("resample", 3)),
            factor=scale if data.get("do_rescale", True) else 1.0,
            mean=tuple(data["image_mean"]) if normalise else None,
            std=tuple(data["image_std"]) if normalise else None,
        )

    def __call__(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Pixels of one image.

        Args:
            image: RGB, shape ``(H, W, 3)`` uint8.

        Returns:
            Shape ``(1, 3, height, width)`` float32.

        Raises:
            ValueError: if the image is anything else.
        """
        pil = rgb_image(image)
        resized = pil.resize((self.width, self.height), resample=Image.Resampling(self.resample))
        pixels = (np.asarray(resized, dtype=np.float64) * self.factor).astype(np.float32)
        if self.mean is not None and self.std is not None:
            mean, std = np.asarray([self.mean, self.std], dtype=np.float32)
            pixels = (pixels - mean) / std
        return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])
