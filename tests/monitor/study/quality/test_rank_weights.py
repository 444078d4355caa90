from __future__ import annotations

from itertools import product

import numpy as np
import pytest

pytest.importorskip("scipy")

from monitor.study.quality.rank_weights import fit_weights, rank_loss


def test_the_loss_counts_places_ties_at_their_mean() -> None:
    parts = np.array([[0.9, 0.0], [0.5, 0.5], [0.1, 0.5]])
    both = np.array([[1.0, 0.0], [0.0, 1.0]])  # the first weight alone, the second alone
    # Ranks 3, 2, 1 and 1, 2.5, 2.5 against 3, 2, 1.
    assert rank_loss(both, parts, [9, 5, 1]) == pytest.approx([0.0, (2 + 0.5 + 1.5) / 3])


def test_the_search_is_as_good_as_a_grid_and_never_worse_than_equal_weights() -> None:
    grid = np.array([w for w in product(range(11), repeat=4) if sum(w) == 10], dtype=float).T
    rng = np.random.default_rng(0)
    for seed in range(5):
        parts = rng.random((30, 4))
        experts = np.round(1 + 9 * parts @ [0.6, 0.1, 0.3, 0.0] + 0.5 * rng.normal(size=30))
        weights = fit_weights(parts, experts, seed=seed)
        assert weights.sum() == pytest.approx(1.0)
        assert (weights >= 0).all()
        loss = rank_loss(weights[:, None], parts, experts)[0]
        assert loss <= 1.05 * rank_loss(grid, parts, experts).min()
        assert loss <= rank_loss(np.ones((4, 1)), parts, experts)[0]
        assert (weights == fit_weights(parts, experts, seed=seed)).all()


def test_where_nothing_tells_the_episodes_apart_the_weights_are_equal() -> None:
    assert fit_weights(np.ones((9, 3)), np.arange(9.0), seed=0).tolist() == [1 / 3] * 3
    assert fit_weights(np.linspace(0, 1, 9)[:, None], np.arange(9.0), seed=0).tolist() == [1.0]
