"""Rotation vectors from unit quaternions, in plain floats: a 4-vector is too small for arrays."""

from __future__ import annotations

from math import atan2, sqrt

from monitor.records import Numbers


def relative_rotation(q0: Numbers, q1: Numbers) -> tuple[float, float, float]:
    """Return Log(q0^-1 q1), radians, the shortest way (q and -q are one rotation).

    Args:
        q0: w, x, y, z, unit.
        q1: w, x, y, z, unit.

    >>> relative_rotation((1.0, 0.0, 0.0, 0.0), (-1.0, 0.0, 0.0, 0.0))
    (0.0, 0.0, 0.0)
    """
    w0, x0, y0, z0 = q0
    w1, x1, y1, z1 = q1
    w = w0 * w1 + x0 * x1 + y0 * y1 + z0 * z1
    x = w0 * x1 - x0 * w1 - y0 * z1 + z0 * y1
    y = w0 * y1 - y0 * w1 - z0 * x1 + x0 * z1
    z = w0 * z1 - z0 * w1 - x0 * y1 + y0 * x1
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    sine = sqrt(x * x + y * y + z * z)
    # angle / sin(angle / 2) tends to 2 for small angles.
    factor = 2.0 * atan2(sine, w) / sine if sine > 1e-12 else 2.0
    return (factor * x + 0.0, factor * y + 0.0, factor * z + 0.0)
