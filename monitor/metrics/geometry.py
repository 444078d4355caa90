"""Lengths and rotations with a fixed order of operations."""

from __future__ import annotations

from math import atan2, sqrt

from monitor.stage import Vector, compiled


@compiled
def length(x: float, y: float, z: float) -> float:
    """Return the length of a vector.

    >>> length(2.0, 3.0, 6.0)
    7.0
    """
    return sqrt(x * x + y * y + z * z)


@compiled
def rotation_between(a: Vector, b: Vector) -> tuple[float, float, float]:
    """Return the rotation vector in radians, in the axes of ``a``, from ``a`` to ``b``.

    Args:
        a: Unit quaternion w, x, y, z.
        b: Unit quaternion; it and its negative are the same orientation.

    >>> [round(x, 6) for x in rotation_between([1.0, 0.0, 0.0, 0.0], [0.6, 0.0, 0.0, 0.8])]
    [0.0, 0.0, 1.85459]
    """
    w0, x0, y0, z0 = a[0], a[1], a[2], a[3]
    w1, x1, y1, z1 = b[0], b[1], b[2], b[3]
    w = w0 * w1 + x0 * x1 + y0 * y1 + z0 * z1
    x = w0 * x1 - x0 * w1 - y0 * z1 + z0 * y1
    y = w0 * y1 - y0 * w1 - z0 * x1 + x0 * z1
    z = w0 * z1 - z0 * w1 - x0 * y1 + y0 * x1
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    sine = sqrt(x * x + y * y + z * z)
    factor = 2.0 * atan2(sine, w) / sine if sine > 1e-12 else 2.0
    return factor * x + 0.0, factor * y + 0.0, factor * z + 0.0
