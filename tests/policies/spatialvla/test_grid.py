from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from monitor.errors import ConfigError
from policies.spatialvla.grid import ActionGrid

NUM_BINS = {
    "translation": {"theta_bins": 4, "phi_bins": 6, "r_bins": 2},
    "rotation": {"roll_bins": 3, "pitch_bins": 4, "yaw_bins": 5},
    "gripper": 2,
}
TOTAL = 4 * 6 * 2 + 3 * 4 * 5 + 2


def grid(begin: int = 100, **changes: Any) -> ActionGrid:
    data = {"action_config": {"num_bins": NUM_BINS, "use_spherical": True}} | changes
    return ActionGrid.from_json(data, begin, TOTAL)


def test_groups_follow_one_another() -> None:
    assert grid().groups == ((100, 148), (148, 208), (208, 210))


def test_without_edges_the_cells_are_of_one_size() -> None:
    theta, phi, r = grid().translation
    np.testing.assert_allclose(np.diff(theta), np.pi / 4)
    np.testing.assert_allclose(phi[[0, -1]], [-np.pi, np.pi])
    np.testing.assert_allclose(r[-1], np.sqrt(3.0))
    assert [edges[0] for edges in grid().rotation] == [-1.0] * 3


def test_edges_of_the_checkpoint_are_used() -> None:
    """Edges as training makes them: quantiles of a Gaussian, so that cells are equally likely."""
    gauss = NormalDist(0.1, 0.3)
    shares = np.linspace(gauss.cdf(-1.0), gauss.cdf(1.0), 4)
    roll = [gauss.inv_cdf(share) for share in shares]
    adaptive = grid(bin_policy={"rotation": {"roll_bins": roll}})
    np.testing.assert_array_equal(adaptive.rotation[0], roll)
    middle = adaptive.decode([[100, 148 + 20, 208]])[0, 3]
    assert middle == pytest.approx((roll[1] + roll[2]) / 2)


def test_every_rotation_and_gripper_cell_comes_back() -> None:
    ids = np.array([[100, one, 208 + one % 2] for one in range(148, 208)])
    np.testing.assert_array_equal(grid().encode(grid().decode(ids))[:, 1:], ids[:, 1:])


def test_translations_inside_the_cube_come_back() -> None:
    ids = np.array([[one, 148, 208] for one in range(100, 148)])
    decoded = grid().decode(ids)
    inside = (np.abs(decoded[:, :3]) < 1.0).all(axis=1)
    assert inside.sum() == 24
    np.testing.assert_array_equal(grid().encode(decoded)[inside], ids[inside])


def test_ids_out_of_place_clip_and_are_told() -> None:
    low, high = [[100, 148, 208]], [[147, 207, 209]]
    assert grid().in_place(low)
    assert not grid().in_place([[5, 148, 208]])
    assert not grid().in_place([[148, 100, 208]])
    np.testing.assert_array_equal(grid().decode([[0, 0, 0]]), grid().decode(low))
    np.testing.assert_array_equal(grid().decode([[999, 999, 999]]), grid().decode(high))


def test_a_chunk_may_come_flat() -> None:
    flat = [100, 150, 208, 120, 151, 209]
    np.testing.assert_array_equal(grid().decode(flat), grid().decode(np.reshape(flat, (2, 3))))
    with pytest.raises(ValueError, match="5 tokens are no whole number of steps of 3"):
        grid().decode(flat[:5])


def test_cartesian_grids_are_read_as_they_are() -> None:
    data = {"num_bins": NUM_BINS, "use_spherical": False}
    edges = {"theta_bins": [-1, -0.5, 0, 0.5, 1], "phi_bins": np.linspace(-1, 1, 7).tolist()}
    plain = grid(
        action_config=data, bin_policy={"translation": edges | {"r_bins": [-1.0, 0.0, 1.0]}}
    )
    action = plain.decode([[100, 148, 209]])[0]
    np.testing.assert_allclose(action[:3], [-0.75, -5 / 6, -0.5])
    np.testing.assert_array_equal(plain.encode(action), [[100, 148, 209]])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bin_policy": {"rotation": {"yaw_bins": [-1.0, 1.0]}}}, "rotation.yaw_bins must be 6"),
        ({"bin_policy": {"translation": {"r_bins": [0.0, 2.0, 1.0]}}}, "3 ascending edges"),
        ({"action_config": None}, "lacks 'action_config'"),
    ],
)
def test_grids_that_do_not_fit_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        grid(**changes)


def test_a_grid_of_another_model_is_refused() -> None:
    data = {"action_config": {"num_bins": NUM_BINS}}
    with pytest.raises(ConfigError, match=r"has 110 cells, config\.json has 8194 action tokens"):
        ActionGrid.from_json(data, 0, 8194)
