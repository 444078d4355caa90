"""Conventions of SimplerEnv; every expected row is derived by hand or by another library."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

from envs.robot import ROBOTS
from monitor.errors import ConfigError
from policies.action import (
    PUBLISHED,
    ActionAdapter,
    ActionConvention,
    GripperReference,
    adapter_for,
    axis_angle,
)
from policies.base import PolicyOutput
from policies.ensemble import EnsembleSpec

WIDOWX, GOOGLE = ROBOTS["widowx"], ROBOTS["google_robot"]
THIRD = 2.0 * math.pi / 3.0 / math.sqrt(3.0)
NAN = float("nan")


def raw(opening: float, x: float = 0.0) -> Any:
    return np.array([x, 0.0, 0.0, 0.0, 0.0, 0.0, opening])


def commands(adapter: ActionAdapter, openings: list[float]) -> list[float]:
    return [round(float(adapter(raw(opening))[-1]), 6) for opening in openings]


@pytest.mark.parametrize(
    ("euler", "expected"),
    [
        ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ((0.2, 0.0, 0.0), (0.2, 0.0, 0.0)),
        ((0.0, -0.3, 0.0), (0.0, -0.3, 0.0)),
        ((0.0, 0.0, 0.4), (0.0, 0.0, 0.4)),
        # j(1+i) products by hand: (1+j)(1+i)/2 = (1+i+j-k)/2, a third of a turn about (1, 1, -1).
        ((math.pi / 2, math.pi / 2, 0.0), (THIRD, THIRD, -THIRD)),
        # (1+k)(1+i)/2 = (1+i+j+k)/2.
        ((math.pi / 2, 0.0, math.pi / 2), (THIRD, THIRD, THIRD)),
        # (1+k)(1+j)/2 = (1-i+j+k)/2.
        ((0.0, math.pi / 2, math.pi / 2), (-THIRD, THIRD, THIRD)),
        # Three quarters of a turn are a quarter back.
        ((1.5 * math.pi, 0.0, 0.0), (-0.5 * math.pi, 0.0, 0.0)),
    ],
)
def test_euler_angles_become_the_rotation_vector_worked_out_by_hand(
    euler: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    np.testing.assert_allclose(axis_angle(euler), expected, atol=1e-12)


def test_euler_angles_agree_with_scipy() -> None:
    rotation = pytest.importorskip("scipy.spatial.transform").Rotation
    angles = np.random.default_rng(0).uniform(-math.pi, math.pi, (200, 3))
    expected = rotation.from_euler("xyz", angles).as_rotvec()
    np.testing.assert_allclose(axis_angle(angles), expected, atol=1e-9)


def test_a_tiny_rotation_is_itself() -> None:
    np.testing.assert_allclose(axis_angle([1e-14, -2e-14, 3e-14]), [1e-14, -2e-14, 3e-14])


WIDOWX_ROWS = [(1.0, 1.0), (0.996, 1.0), (0.51, 1.0), (0.5, -1.0), (0.0, -1.0), (-0.996, -1.0)]


@pytest.mark.parametrize(("opening", "expected"), WIDOWX_ROWS)
def test_widowx_opens_fully_or_closes_fully(opening: float, expected: float) -> None:
    assert ActionAdapter(WIDOWX)(raw(opening))[-1] == expected


GOOGLE_ROWS: list[tuple[str, GripperReference, int, list[float], list[float]]] = [
    (
        "closing is held for 15 steps, then the change of the openings again",
        GripperReference.PREVIOUS,
        15,
        [1.0, 1.0, 0.0] + [0.0] * 16,
        [0.0, 0.0] + [1.0] * 15 + [0.0] * 2,
    ),
    (
        "opening is negative and keeps its size",
        GripperReference.PREVIOUS,
        3,
        [0.1, 0.8, 0.8, 0.8, 0.8],
        [0.0, -0.7, -0.7, -0.7, 0.0],
    ),
    (
        "turning back while closing is held is lost",
        GripperReference.PREVIOUS,
        3,
        [1.0, 0.0, 1.0, 1.0, 1.0],
        [0.0, 1.0, 1.0, 1.0, 0.0],
    ),
    (
        "closing slowly never holds",
        GripperReference.PREVIOUS,
        3,
        [1.0, 0.6, 0.2, 0.2],
        [0.0, 0.4, 0.4, 0.0],
    ),
    (
        "half is not enough to hold",
        GripperReference.PREVIOUS,
        3,
        [1.0, 0.5, 0.5],
        [0.0, 0.5, 0.0],
    ),
    (
        "counted from the last command, turning back holds once the first is done",
        GripperReference.COMMANDED,
        3,
        [1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        [0.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, 0.0],
    ),
    (
        "counted from the last command, closing slowly holds as soon as it is half done",
        GripperReference.COMMANDED,
        2,
        [1.0, 0.6, 0.2, 0.0, 0.0],
        [0.0, 0.4, 0.8, 0.8, 0.2],
    ),
]


@pytest.mark.parametrize(
    ("reference", "steps", "openings", "expected"),
    [row[1:] for row in GOOGLE_ROWS],
    ids=[row[0] for row in GOOGLE_ROWS],
)
def test_google_robot_takes_changes_and_holds_large_ones(
    reference: GripperReference, steps: int, openings: list[float], expected: list[float]
) -> None:
    convention = ActionConvention(robot=GOOGLE, sticky_steps=steps, gripper_reference=reference)
    assert commands(ActionAdapter(convention), openings) == pytest.approx(expected)


def test_nothing_is_held_into_the_next_episode() -> None:
    adapter = ActionAdapter(GOOGLE)
    assert commands(adapter, [1.0, 0.0, 0.0]) == [0.0, 1.0, 1.0]
    adapter.reset()
    assert commands(adapter, [0.0, 0.0]) == [0.0, 0.0]


def test_the_scale_is_on_translation_and_rotation_only() -> None:
    adapter = ActionAdapter(ActionConvention(robot=WIDOWX, action_scale=2.0))
    action = adapter([0.01, -0.02, 0.03, 0.1, 0.0, 0.0, 0.9])
    np.testing.assert_allclose(action, [0.02, -0.04, 0.06, 0.2, 0.0, 0.0, 1.0], atol=1e-12)


@pytest.mark.parametrize("robot", [WIDOWX, GOOGLE])
def test_what_is_not_finite_stays_so_for_the_monitor(robot: Any) -> None:
    adapter = ActionAdapter(robot)
    bad = np.array([NAN, 0.0, 0.0, np.inf, 0.0, 0.0, NAN])
    assert np.isnan(adapter(bad)[[0, 3, 6]]).all()
    assert adapter(raw(1.0))[-1] == ActionAdapter(robot)(raw(1.0))[-1]


def test_alternatives_and_plan_leave_the_state_alone() -> None:
    adapter, untouched = ActionAdapter(GOOGLE), ActionAdapter(GOOGLE)
    for one in (adapter, untouched):
        one(raw(1.0))
    both = np.stack([raw(0.0), raw(1.0)])
    assert adapter.alternatives(both)[:, -1].tolist() == [1.0, 0.0]
    assert adapter.plan(both)[:, -1].tolist() == [1.0, 1.0]
    assert commands(adapter, [0.9, 0.2]) == commands(untouched, [0.9, 0.2])


def test_an_output_is_adapted_whole() -> None:
    adapter = ActionAdapter(GOOGLE)
    adapter(raw(1.0))
    chunk = np.stack([raw(0.0, x=0.01), raw(0.0, x=0.02), raw(1.0, x=0.03)])
    samples = np.stack([raw(1.0), raw(0.2), raw(0.0)])
    out = adapter.adapt(PolicyOutput(action=chunk[0], chunk=chunk, samples=samples))
    assert out.chunk is not None
    assert out.samples is not None
    np.testing.assert_array_equal(out.chunk[0], out.action)
    assert out.chunk[:, -1].tolist() == [1.0, 1.0, 1.0]
    assert out.samples[:, -1].tolist() == pytest.approx([0.0, 0.8, 1.0])
    assert chunk[0, -1] == 0.0, "the policy's own arrays are left alone"


def test_an_ensemble_makes_the_action_of_the_chunks() -> None:
    convention = ActionConvention(robot=WIDOWX, ensemble=EnsembleSpec(horizon=2))
    adapter = ActionAdapter(convention)
    first = np.stack([raw(1.0, x=0.01), raw(0.0, x=0.04)])
    second = np.stack([raw(1.0, x=0.02), raw(1.0, x=0.02)])
    assert adapter.adapt(PolicyOutput(action=first[0], chunk=first)).action[0] == 0.01
    out = adapter.adapt(PolicyOutput(action=second[0], chunk=second))
    # The mean of 0.04 (planned a step ago) and 0.02; half open counts as closed.
    np.testing.assert_allclose(out.action, [0.03, 0, 0, 0, 0, 0, -1.0], atol=1e-12)
    assert out.chunk is not None
    np.testing.assert_array_equal(out.chunk[0], out.action)
    adapter.reset()
    assert adapter.adapt(PolicyOutput(action=second[0], chunk=second)).action[0] == 0.02


def test_a_copy_continues_alike() -> None:
    adapter = ActionAdapter(GOOGLE)
    commands(adapter, [1.0, 0.0])
    twin = copy.deepcopy(adapter)
    openings = [0.0] * 14 + [1.0]
    assert commands(adapter, openings) == commands(twin, openings)


@pytest.mark.parametrize("shape", [(6,), (8,), (1, 7)])
def test_another_shape_is_named(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"widowx takes \(7,\): metres, Euler angles and opening"):
        ActionAdapter(WIDOWX)(np.zeros(shape))


# Policy, robot, steps held, counted from, dataset, ensemble over, its strength, rate in Hz.
PUBLISHED_ROWS = [
    ("openvla", "widowx", 1, "previous", "bridge_orig", None, None, 5.0),
    ("openvla", "google_robot", 15, "previous", "fractal20220817_data", None, None, 3.0),
    ("spatialvla", "widowx", 1, "previous", "bridge_orig/1.0.0", 4, -0.8, 5.0),
    ("spatialvla", "google_robot", 10, "commanded", "fractal20220817_data/0.1.0", 4, -0.8, 3.0),
    ("pi0", "widowx", 1, "previous", None, None, None, 5.0),
    ("pi0", "google_robot", 10, "commanded", None, None, None, 3.0),
]


@pytest.mark.parametrize("row", PUBLISHED_ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_published_conventions(row: tuple[Any, ...]) -> None:
    found = PUBLISHED[row[:2]]
    assert (found.held_steps, found.gripper_reference.value, found.unnorm_key) == row[2:5]
    ensemble = found.ensemble
    assert (ensemble.horizon if ensemble else None) == row[5]
    assert (ensemble.strength if ensemble else None) == row[6]
    assert found.robot.control_freq_hz == row[7]
    assert found.action_scale == 1.0
    adapter = adapter_for(row[0], row[1])
    assert adapter is not None
    assert adapter.convention is found


def test_every_published_convention_is_in_the_table_above() -> None:
    assert {row[:2] for row in PUBLISHED_ROWS} == set(PUBLISHED)


def test_no_robot_no_adapter_and_an_unknown_one_is_named() -> None:
    assert adapter_for("openvla", None) is None
    with pytest.raises(ConfigError, match="unknown robot 'widow'; did you mean 'widowx'"):
        adapter_for("openvla", "widow")
