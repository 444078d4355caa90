"""The robot's state, against rotations written out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policies import Observation
from policies.pi0.state import STATES

IMAGE = np.zeros((2, 2, 3), np.uint8)


def seen(**more: Any) -> Observation:
    given: dict[str, Any] = {
        "tcp_position": np.array([0.3, -0.1, 0.2]),
        "tcp_quaternion": np.array([1.0, 0.0, 0.0, 0.0]),
        "gripper": np.array([0.75]),
        "joint_positions": np.arange(8.0),
    }
    return Observation(image=IMAGE, **{**given, **more})


def turn(axis: int, angle: float) -> Any:
    """Quaternion w, x, y, z about a coordinate axis."""
    q = np.zeros(4)
    q[0], q[1 + axis] = np.cos(angle / 2), np.sin(angle / 2)
    return q


def product(a: Any, b: Any) -> Any:
    (w, *v), (s, *u) = a, b
    vector = w * np.array(u) + s * np.array(v) + np.cross(v, u)
    return np.array([w * s - np.dot(v, u), *vector])


@pytest.mark.parametrize("angles", [(0.3, -0.4, 0.9), (-2.0, 0.2, 3.0), (0.0, 0.0, 0.0)])
def test_bridge_counts_from_pointing_down(angles: tuple[float, float, float]) -> None:
    """The frame is turned by 90 degrees about y: a tool turned so has angles of its own alone."""
    roll, pitch, yaw = angles
    own = product(turn(2, yaw), product(turn(1, pitch), turn(0, roll)))
    state = STATES["bridge"](seen(tcp_quaternion=product(own, turn(1, np.pi / 2))))
    assert state == pytest.approx([0.3, -0.1, 0.2, *angles, 0.0, 0.75])


def test_bridge_survives_the_singular_pose() -> None:
    state = STATES["bridge"](seen())  # pitch of -90 degrees
    assert state is not None
    assert np.isfinite(state).all()
    assert state[3:6] == pytest.approx([0.0, -np.pi / 2, 0.0])


def test_fractal_has_the_scalar_last_and_counts_closing() -> None:
    q = product(turn(0, 0.5), turn(2, 1.0))
    state = STATES["fractal"](seen(tcp_quaternion=q))
    assert state == pytest.approx([0.3, -0.1, 0.2, q[1], q[2], q[3], q[0], 0.25])


def test_joints_then_opening() -> None:
    assert STATES["joints"](seen()) == pytest.approx([*range(8), 0.75])
    assert STATES["joints"](seen(gripper=None)) == pytest.approx([*range(8)])


@pytest.mark.parametrize("name", STATES)
def test_what_is_not_seen_is_unknown(name: str) -> None:
    assert STATES[name](Observation(image=IMAGE)) is None
