"""The camera's matrix, by robot: what the positions in space are computed with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import ConfigError, unknown_name

__all__ = ["camera_matrix", "scale_matrix", "usable_matrix"]

DEFAULT: Final = "default"
"""Entry for datasets that have none of their own."""


def scale_matrix(
    matrix: ArrayLike, *, width: float, height: float, side: int
) -> NDArray[np.float32]:
    """A camera matrix for the image as the model gets it.

    Args:
        matrix: pixels of the camera's own image, shape ``(3, 3)``.
        width: width of that image, pixels.
        height: height of that image, pixels.
        side: side of the model's square image, pixels.

    >>> scale_matrix([[640, 0, 320], [0, 640, 240], [0, 0, 1]], width=640, height=480, side=224)[0]
    array([224.,   0., 112.], dtype=float32)
    """
    scaled = usable_matrix(matrix)
    scaled[:2] *= np.array([[side / width], [side / height]], dtype=np.float32)
    return scaled


def usable_matrix(matrix: ArrayLike) -> NDArray[np.float32]:
    """A copy of a matrix that a camera can have: ``(3, 3)``, finite, with lengths above 0.

    Raises:
        ConfigError: if it is anything else; positions in space would be none.

    >>> usable_matrix([[640, 0, 320], [0, 640, 240], [0, 0, 1]]).shape
    (3, 3)
    """
    copied = np.array(matrix, dtype=np.float32)
    if copied.shape != (3, 3):
        msg = f"a camera matrix is (3, 3), got shape {copied.shape}"
        raise ConfigError(msg)
    if not np.isfinite(copied).all() or (np.diagonal(copied) <= 0.0).any():
        msg = (
            "a camera matrix is finite, with focal lengths in pixels above 0 and a 1 on its "
            f"diagonal, got {copied.tolist()}"
        )
        raise ConfigError(msg)
    return copied


def camera_matrix(
    cameras: Mapping[str, Any], key: str, side: int, *, strict: bool = False
) -> NDArray[np.float32]:
    """The matrix of a dataset's camera, ``(3, 3)``, pixels of the model's image.

    Args:
        cameras: ``intrinsic_config`` of the processor.
        key: dataset.
        side: side of the model's square image, pixels.
        strict: the key must be there; otherwise the default camera stands in, as upstream has it.

    Raises:
        ConfigError: if there is no such camera; lists the known ones.
    """
    found = cameras.get(key)
    if found is None and not strict:
        found = cameras.get(DEFAULT)
    if found is None:
        raise ConfigError(unknown_name("camera", key, cameras))
    return scale_matrix(found["intrinsic"], width=found["width"], height=found["height"], side=side)
