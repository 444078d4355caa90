"""The image of an observation: checked, and shrunk as evaluations on SimplerEnv do it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["area_means", "resized_square", "rgb_image"]


def rgb_image(image: NDArray[np.uint8]) -> Image.Image:
    """An image for Pillow.

    Args:
        image: RGB, shape ``(H, W, 3)`` uint8.

    Raises:
        ValueError: if it is anything else.
    """
    array = np.asarray(image)
    if array.ndim != 3 or array.shape[2] != 3 or array.dtype != np.uint8 or not array.size:
        empty = "" if array.size else ", which has no pixels"
        msg = f"image must be (H, W, 3) uint8 RGB, got shape {array.shape} {array.dtype}{empty}"
        raise ValueError(msg)
    return Image.fromarray(array)


def resized_square(image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """A larger image shrunk to a square by the areas of its pixels, as SimplerEnv's policies do.

    Args:
        image: RGB, shape ``(H, W, 3)`` uint8.
        side: side of the square; an image that is nowhere larger passes unchanged.

    Raises:
        ValueError: as :func:`rgb_image`.
    """
    pil = rgb_image(image)
    if max(pil.size) <= side:
        return image
    means = area_means(area_means(np.asarray(pil), side, axis=0), side, axis=1)
    return np.asarray(np.rint(means), dtype=np.uint8)


def area_means(values: NDArray[Any], size: int, *, axis: int) -> NDArray[np.float32]:
    """Means along one axis over equal stretches, a pixel that is cut counting by its part."""
    old = values.shape[axis]
    edges = np.arange(size + 1) * (old / size)
    pixels = np.arange(old)
    cover = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    share = (np.maximum(cover, 0.0) * (size / old)).astype(np.float32)
    means = np.tensordot(share, values.astype(np.float32), axes=(1, axis))
    return np.asarray(np.moveaxis(means, 0, axis), dtype=np.float32)
