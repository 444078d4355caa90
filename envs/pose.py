"""Rotations and poses as plain arrays: quaternions (w, x, y, z), poses position then quaternion."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from envs.base import FloatArray

__all__ = [
    "between",
    "euler_xyz",
    "inverse",
    "multiply",
    "pose7",
    "rotation_matrix",
    "rotation_vector",
    "turned",
]


def pose7(pose: Any) -> FloatArray:
    """Return a SAPIEN pose as one array, position [m] and quaternion (w, x, y, z), ``(7,)``."""
    return np.concatenate([pose.p, pose.q]).astype(np.float64)


def rotation_matrix(quaternion: ArrayLike) -> FloatArray:
    """Matrix of a unit quaternion (w, x, y, z), shape ``(3, 3)``.

    >>> rotation_matrix([0.0, 0.0, 0.0, 1.0]).diagonal()
    array([-1., -1.,  1.])
    """
    w, x, y, z = np.asarray(quaternion, dtype=np.float64)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _product(a: FloatArray, b: FloatArray) -> FloatArray:
    w, v = a[0] * b[0] - a[1:] @ b[1:], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])
    return np.concatenate([[w], v])


def rotation_vector(start: ArrayLike, end: ArrayLike) -> FloatArray:
    """Axis-angle vector that turns orientation ``start`` into ``end``, in their own frame [rad].

    Args:
        start: unit quaternion (w, x, y, z).
        end: unit quaternion (w, x, y, z).

    Returns:
        Log(end · start⁻¹), the shorter way round, shape ``(3,)``.

    >>> half = 0.5 ** 0.5
    >>> rotation_vector([1.0, 0.0, 0.0, 0.0], [half, 0.0, 0.0, half]).round(4)
    array([0.    , 0.    , 1.5708])
    """
    first, last = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    quaternion = _product(last, first * np.array([1.0, -1.0, -1.0, -1.0]))
    quaternion = quaternion if quaternion[0] >= 0 else -quaternion
    sine = float(np.linalg.norm(quaternion[1:]))
    factor = 2.0 * np.arctan2(sine, quaternion[0]) / sine if sine > 1e-12 else 2.0
    return np.asarray(factor * quaternion[1:], dtype=np.float64)


def turned(quaternion: ArrayLike, vector: ArrayLike) -> FloatArray:
    """Orientation ``quaternion`` turned by an axis-angle vector [rad] of the frame it is in.

    >>> turned([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 3.141592653589793]).round(12) + 0.0
    array([0., 0., 0., 1.])
    """
    return _product(_quaternion(vector), np.asarray(quaternion, dtype=np.float64))


def _quaternion(vector: ArrayLike) -> FloatArray:
    given = np.asarray(vector, dtype=np.float64)
    angle = float(np.linalg.norm(given))
    axis = given / angle if angle > 0.0 else given
    return np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)])


def euler_xyz(vector: ArrayLike) -> FloatArray:
    """Intrinsic x, y, z Euler angles of an axis-angle vector [rad], shape ``(3,)``.

    >>> euler_xyz([0.0, 0.0, 0.3]).round(12) + 0.0
    array([0. , 0. , 0.3])
    """
    matrix = rotation_matrix(_quaternion(vector))
    middle = np.arcsin(np.clip(matrix[0, 2], -1.0, 1.0))
    if abs(matrix[0, 2]) > 1.0 - 1e-12:
        # The first and the last axis coincide: all of their turn is the first's.
        return np.array([np.arctan2(matrix[2, 1], matrix[1, 1]), middle, 0.0])
    first = np.arctan2(-matrix[1, 2], matrix[2, 2])
    return np.array([first, middle, np.arctan2(-matrix[0, 1], matrix[0, 0])])


def multiply(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Pose ``b``, which is given in the frame of pose ``a``, in the frame of ``a``'s own parent.

    Both and the result have shape ``(7,)``.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    position = first[:3] + rotation_matrix(first[3:]) @ second[:3]
    return np.concatenate([position, _product(first[3:], second[3:])])


def inverse(pose: ArrayLike) -> FloatArray:
    """Pose that undoes ``pose``, both of shape ``(7,)``.

    >>> pose = [0.1, 0.2, 0.3, 0.6, 0.0, 0.8, 0.0]
    >>> multiply(pose, inverse(pose)).round(12) + 0.0
    array([0., 0., 0., 1., 0., 0., 0.])
    """
    given = np.asarray(pose, dtype=np.float64)
    quaternion = given[3:] * np.array([1.0, -1.0, -1.0, -1.0])
    return np.concatenate([-rotation_matrix(quaternion) @ given[:3], quaternion])


def between(base: ArrayLike, other: ArrayLike) -> FloatArray:
    """Pose ``other`` seen from pose ``base``, all of shape ``(7,)``."""
    return multiply(inverse(base), other)
