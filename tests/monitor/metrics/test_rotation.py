from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from monitor.metrics.geometry import rotation_between


@pytest.mark.parametrize("size", [1e-14, 1e-9, 1e-4, 0.3, 2.0, 3.14])
def test_equals_scipy_whatever_the_signs(size: float) -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        a = Rotation.random(rng=rng)
        axis = rng.normal(size=3)
        turn = size * axis / np.linalg.norm(axis)
        b = a * Rotation.from_rotvec(turn)
        q0, q1 = (np.roll(r.as_quat(), 1) * rng.choice([-1, 1]) for r in (a, b))
        got = rotation_between(q0.tolist(), q1.tolist())
        np.testing.assert_allclose(got, turn, atol=1e-7 if size > 3 else 1e-9)
