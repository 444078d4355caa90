"""Images for π0 by Pillow and NumPy: fit into a square, pad with black, scale to [-1, 1].

Upstream does this in three ways that differ in smoothing and in where the image sits; a
checkpoint sees the one it was trained with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from policies.image import area_means, rgb_image
from policies.pi0.config import Layout

__all__ = ["STYLES", "ImageFit", "ResizeStyle", "prepare_image"]

FloatImage = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeStyle:
    """How an image becomes a square.

    Attributes:
        smooth: average over the pixels that fall together and round to whole numbers, as Pillow
            does; otherwise sample between the nearest four.
        centered: black on both sides alike; otherwise on the left and on top alone.
    """

    smooth: bool
    centered: bool


STYLES: Final[Mapping[Layout, ResizeStyle]] = {
    Layout.OPENPI: ResizeStyle(smooth=True, centered=True),
    Layout.LEROBOT: ResizeStyle(smooth=False, centered=True),
    Layout.TRANSFORMERS: ResizeStyle(smooth=False, centered=True),
    Layout.LEROBOT_V1: ResizeStyle(smooth=False, centered=False),
}
"""Resize style by checkpoint layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFit:
    """How images of any size reach the model.

    Attributes:
        size: side of the square, pixels.
        style: see :class:`ResizeStyle`.
        squash: first shrink to the square without keeping the aspect ratio, by areas: the
            fine-tunes
            on Bridge and Fractal data saw such images, and the SimplerEnv evaluations do this.
    """

    size: int
    style: ResizeStyle
    squash: bool = False


def prepare_image(image: NDArray[np.uint8], fit: ImageFit) -> FloatImage:
    """Pixels of one image.

    Args:
        image: RGB, shape ``(H, W, 3)`` uint8.
        fit: how it becomes a square.

    Returns:
        Shape ``(3, size, size)``, in [-1, 1]; black is -1.

    Raises:
        ValueError: if the image is anything else.
    """
    array = np.asarray(rgb_image(image))
    if fit.squash:
        means = area_means(area_means(array, fit.size, axis=0), fit.size, axis=1)
        array = np.rint(means).astype(np.uint8)
    unit = _padded(_resized(array, fit), fit)
    return np.ascontiguousarray((unit * np.float32(2.0) - np.float32(1.0)).transpose(2, 0, 1))


def _resized(array: NDArray[np.uint8], fit: ImageFit) -> FloatImage:
    """The image on [0, 1], as large as it fits without changing its shape."""
    height, width = array.shape[:2]
    if (height, width) != (fit.size, fit.size):
        ratio = max(width / fit.size, height / fit.size)
        height, width = int(height / ratio), int(width / ratio)
        if not height or not width:
            msg = (
                f"image is {array.shape[0]}×{array.shape[1]}: of so narrow an image nothing is "
                f"left in a square of {fit.size}; give the camera's own, or load with squash=True"
            )
            raise ValueError(msg)
    if fit.style.smooth:
        pil = Image.fromarray(array).resize((width, height), Image.Resampling.BILINEAR)
        return np.asarray(pil, dtype=np.float32) / np.float32(255.0)
    scaled = array.astype(np.float32) / np.float32(255.0)
    return _between(_between(scaled, height, axis=0), width, axis=1)


def _between(values: FloatImage, size: int, *, axis: int) -> FloatImage:
    """Linear interpolation along one axis between the two nearest pixel centres."""
    old = values.shape[axis]
    if old == size:
        return values
    # The step is a float32 as torch's is; the rest is rounded once, as its fused operation does.
    step = float(np.float32(old / size))
    place = np.maximum((np.arange(size) + 0.5) * step - 0.5, 0.0).astype(np.float32)
    low = np.minimum(place.astype(np.int64), old - 1)
    high = np.minimum(low + 1, old - 1)
    shape = [1] * values.ndim
    shape[axis] = size
    share = (place - low.astype(np.float32)).reshape(shape)
    return np.asarray(
        values.take(low, axis) * (np.float32(1.0) - share) + values.take(high, axis) * share,
        dtype=np.float32,
    )


def _padded(unit: FloatImage, fit: ImageFit) -> FloatImage:
    height, width = unit.shape[:2]
    top, left = fit.size - height, fit.size - width
    if fit.style.centered:
        top, left = top // 2, left // 2
    out = np.zeros((fit.size, fit.size, 3), dtype=np.float32)
    out[top : top + height, left : left + width] = unit
    return out
