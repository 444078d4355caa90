"""The picture of an observation, checked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["rgb_picture"]


def rgb_picture(image: NDArray[np.uint8]) -> Image.Image:
    """A picture for Pillow.

    Args:
        image: RGB, shape ``(H, W, 3)`` uint8.

    Raises:
        ValueError: if it is anything else.
    """
    array = np.asarray(image)
    if array.ndim != 3 or array.shape[2] != 3 or array.dtype != np.uint8:
        msg = f"image must be (H, W, 3) uint8 RGB, got shape {array.shape} {array.dtype}"
        raise ValueError(msg)
    return Image.fromarray(array)
