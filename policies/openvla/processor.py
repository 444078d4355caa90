"""Images for the vision towers, by Pillow and NumPy alone, equal to upstream's bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from monitor.errors import ConfigError, unknown_name
from policies.image import rgb_image
from policies.json_file import as_config_error, read_json
from policies.openvla.config import OpenVLAConfig

__all__ = ["ImageProcessor"]

IMAGENET: Final = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALF: Final = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
CROP_AREA: Final = 0.9
"""Share of the image that checkpoints fine-tuned with random crops want at test time."""
_STRATEGIES: Final = ("resize-naive", "letterbox", "resize-crop")
_RESAMPLE: Final = {
    "bicubic": Image.Resampling.BICUBIC,
    "bilinear": Image.Resampling.BILINEAR,
    "lanczos": Image.Resampling.LANCZOS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageProcessor:
    """Resize, scale to [0, 1], normalise once per tower, stack on channels.

    Attributes:
        sizes: side of each tower's input, pixels.
        means: per tower and channel.
        stds: per tower and channel.
        interpolations: per tower.
        strategy: how an image becomes a square: ``resize-naive`` squeezes it, ``letterbox`` adds
            bars of the mean colour, ``resize-crop`` cuts the longer side off.
        center_crop: first cut to the middle 90% of the area.
    """

    sizes: tuple[int, ...]
    means: tuple[tuple[float, ...], ...]
    stds: tuple[tuple[float, ...], ...]
    interpolations: tuple[str, ...]
    strategy: str = "resize-naive"
    center_crop: bool = False

    @classmethod
    def from_folder(
        cls, folder: Path, config: OpenVLAConfig, *, center_crop: bool = False
    ) -> ImageProcessor:
        """Read ``preprocessor_config.json``; without it, what the towers were trained with."""
        path = folder / "preprocessor_config.json"
        if path.is_file():
            with as_config_error(path):
                return cls.from_json(read_json(path), center_crop=center_crop)
        families = [tower.family for tower in config.towers] or ["grounded-conv"]
        norms = [IMAGENET if family == "dino" else HALF for family in families]
        return cls(
            sizes=tuple(config.image_size for _ in families),
            means=tuple(mean for mean, _ in norms),
            stds=tuple(std for _, std in norms),
            interpolations=tuple("bicubic" for _ in families),
            strategy=_known_strategy(config.source),
            center_crop=center_crop,
        )

    @classmethod
    def from_json(cls, data: dict[str, Any], *, center_crop: bool = False) -> ImageProcessor:
        """Read a parsed ``preprocessor_config.json``; upstream's default strategy is letterbox.

        Raises:
            ConfigError: if it names a strategy or an interpolation that is not known here.
        """
        for name in data["interpolations"]:
            if name not in _RESAMPLE:
                raise ConfigError(unknown_name("interpolation", name, _RESAMPLE))
        return cls(
            sizes=tuple(int(size[-1]) for size in data["input_sizes"]),
            means=tuple(tuple(row) for row in data["means"]),
            stds=tuple(tuple(row) for row in data["stds"]),
            interpolations=tuple(data["interpolations"]),
            strategy=_known_strategy(data),
            center_crop=center_crop,
        )

    def __call__(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Pixels of one image.

        Args:
            image: RGB, shape ``(H, W, 3)`` uint8.

        Returns:
            Shape ``(1, 3 * towers, S, S)`` float32.

        Raises:
            ValueError: if the image is anything else.
        """
        pil = rgb_image(image)
        if self.center_crop:
            pil = _middle(pil)
        if self.strategy == "letterbox":
            pil = _letterboxed(pil, self.means[-1])
        square = self.strategy == "resize-naive"
        towers = zip(self.sizes, self.means, self.stds, self.interpolations, strict=True)
        stack = [
            (_resized(pil, size, how, square=square) - np.asarray(mean, np.float32))
            / np.asarray(std, np.float32)
            for size, mean, std, how in towers
        ]
        return np.ascontiguousarray(np.concatenate(stack, axis=-1).transpose(2, 0, 1)[None])


def _known_strategy(data: Mapping[str, Any]) -> str:
    strategy = str(data.get("image_resize_strategy", "letterbox"))
    if strategy not in _STRATEGIES:
        raise ConfigError(unknown_name("image_resize_strategy", strategy, _STRATEGIES))
    return strategy


def _resized(pil: Image.Image, size: int, how: str, *, square: bool) -> NDArray[np.float32]:
    """Pixels on [0, 1], shape ``(size, size, 3)``: squeezed, or the middle at its own shape."""
    width = height = size
    if not square:
        shorter = min(pil.size)
        width, height = (int(size * side / shorter) for side in pil.size)
    resized = pil.resize((width, height), resample=_RESAMPLE[how])
    left, top = round((width - size) / 2.0), round((height - size) / 2.0)
    cut = resized.crop((left, top, left + size, top + size))
    return np.asarray(cut, dtype=np.float32) / np.float32(255.0)


def _letterboxed(pil: Image.Image, mean: tuple[float, ...]) -> Image.Image:
    """The image between bars of the mean colour; an odd pixel stays unfilled, as upstream."""
    longer = max(pil.size)
    sideways, upright = ((longer - side) // 2 for side in pil.size)
    colour = tuple(int(value * 255) for value in mean)
    return ImageOps.expand(pil, border=(sideways, upright, sideways, upright), fill=colour)


def _middle(pil: Image.Image) -> Image.Image:
    width, height = pil.size
    side = CROP_AREA**0.5
    left, top = width * (1.0 - side) / 2.0, height * (1.0 - side) / 2.0
    box = (left, top, left + width * side, top + height * side)
    return pil.resize(pil.size, resample=Image.Resampling.BILINEAR, box=box)
