"""Images: a fingerprint, and how much the values differ."""

from __future__ import annotations

from math import sqrt
from typing import Any, Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from monitor.reading.arrays import to_array

__all__ = ["EXPECTED", "as_pixels", "image_values"]

EXPECTED: Final = "(H, W, 3) uint8"
SAMPLED: Final = 4096
"""Values of an image that its standard deviation is taken over."""


def as_pixels(image: Any, *lead: int) -> NDArray[np.uint8] | None:
    """Return the values of images ``(*lead, H, W, 3)`` of type uint8 as ``(*lead, H W 3)``.

    None stands for anything else.

    >>> as_pixels(np.zeros((2, 4, 5, 3), np.uint8), 2).shape
    (2, 60)
    """
    array = to_array(image)
    if array is None or array.dtype != np.uint8 or array.size == 0:
        return None
    shape = array.shape
    if len(shape) != len(lead) + 3 or shape[: len(lead)] != lead or shape[-1] != 3:
        return None
    return np.ascontiguousarray(array).reshape(*lead, -1)


def image_values(pixels: NDArray[np.uint8]) -> tuple[int, float]:
    """Return the fingerprint and the standard deviation, on the scale 0 to 255, of one image.

    >>> image_values(np.array([0, 2, 0, 2], np.uint8))[1]
    1.0
    """
    sample = pixels[:: max(1, pixels.size // SAMPLED)].astype(np.float64)
    # Whole numbers of this size are added up and multiplied without rounding.
    count, total, squares = len(sample), sample.sum(), sample.dot(sample)
    return crc32(pixels.data), sqrt(count * squares - total * total) / count
