from __future__ import annotations

import numpy as np
import pytest

from policies.learn.soft_cells import CELLS, cell_count, fitted_edges, group_middles, soft_cells
from policies.spatialvla.grid import ActionGrid


@pytest.fixture(scope="module")
def grid() -> ActionGrid:
    theta = np.random.default_rng(0).uniform(0.0, np.pi, 2000) ** 2 / np.pi
    processor = {"action_config": {"num_bins": CELLS}, "bin_policy": fitted_edges(theta)}
    return ActionGrid.from_json(processor, 65, cell_count())


def test_labels_peak_at_the_nearest_cell_and_blur_with_sigma(grid: ActionGrid) -> None:
    rng = np.random.default_rng(1)
    actions = rng.uniform(-0.7, 0.7, (50, 7))
    sharp, soft = (soft_cells(grid, actions, (sigma, sigma)) for sigma in (0.02, 0.2))
    for group in (0, 1):
        middles = group_middles(grid)[group]
        wanted = actions[:, 3 * group : 3 * group + 3]
        nearest = ((wanted[:, None] - middles) ** 2).sum(axis=2).argmin(axis=1)
        for labels in (sharp[group], soft[group]):
            np.testing.assert_array_equal(labels.argmax(axis=1), nearest)
            np.testing.assert_allclose(labels.sum(axis=1), 1.0, atol=1e-5)
        assert soft[group].max(axis=1).mean() < sharp[group].max(axis=1).mean()
    opened = (actions[:, 6] >= 0.5).astype(int)
    np.testing.assert_array_equal(sharp[2].argmax(axis=1), opened)


def test_labels_are_near_the_action_on_average(grid: ActionGrid) -> None:
    actions = np.zeros((3, 7))
    actions[:, :3] = [[1.0, 0, 0], [0, -0.6, 0.2], [0, 0, -1.0]]
    labels = soft_cells(grid, actions, (0.07, 0.15))
    found = labels[0] @ group_middles(grid)[0]
    assert np.abs(found - actions[:, :3]).max() < 0.1
    # Straight down, in a cell around the pole, is nearly exact.
    assert np.abs(found[2] - actions[2, :3]).max() < 0.02


def test_edges_are_denser_where_the_demonstrations_are() -> None:
    theta = np.concatenate([np.full(500, 1.0), np.full(500, 1.1), np.linspace(0.2, 3.0, 100)])
    edges = np.array(fitted_edges(theta)["translation"]["theta_bins"])
    assert (np.diff(edges) > 0).all()
    width = np.diff(edges)
    assert width[np.searchsorted(edges, 1.05) - 1] < 0.6 * width[1:-1].max()
