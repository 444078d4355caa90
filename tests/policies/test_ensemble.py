from __future__ import annotations

import math

import numpy as np
import pytest

from policies.ensemble import ActionEnsemble, EnsembleSpec, EnsembleWeights


def chunks(*rows: tuple[float, ...]) -> list[list[list[float]]]:
    """Chunks of one-dimensional actions."""
    return [[[value] for value in row] for row in rows]


OLDER, NEWER = math.exp(0.0), math.exp(0.8)
ROWS = [
    # Step 0: 1. Step 1: chunk 0 says 2, chunk 1 says 10. Step 2: 3, 20 and 100.
    (0.0, [1.0, (2.0 + 10.0) / 2.0, (3.0 + 20.0 + 100.0) / 3.0]),
    (
        -0.8,
        [
            1.0,
            (2.0 * OLDER + 10.0 * NEWER) / (OLDER + NEWER),
            (3.0 + 20.0 * NEWER + 100.0 * NEWER**2) / (1.0 + NEWER + NEWER**2),
        ],
    ),
]


@pytest.mark.parametrize(("strength", "expected"), ROWS)
def test_predictions_for_one_step_are_weighed_by_age(
    strength: float, expected: list[float]
) -> None:
    ensemble = ActionEnsemble(EnsembleSpec(horizon=3, strength=strength))
    made = chunks((1.0, 2.0, 3.0), (10.0, 20.0, 30.0), (100.0, 200.0, 300.0))
    assert [ensemble.update(chunk)[0] for chunk in made] == pytest.approx(expected)


def test_chunks_older_than_the_horizon_are_forgotten() -> None:
    ensemble = ActionEnsemble(EnsembleSpec(horizon=2))
    made = chunks((1.0, 2.0, 3.0), (10.0, 20.0, 30.0), (100.0, 200.0, 300.0))
    got = [ensemble.update(chunk)[0] for chunk in made]
    assert got[2] == pytest.approx((20.0 + 100.0) / 2.0)


def test_the_adaptive_ensemble_listens_to_who_agrees() -> None:
    spec = EnsembleSpec(horizon=3, weights=EnsembleWeights.AGREEMENT, strength=2.0)
    ensemble = ActionEnsemble(spec)
    ensemble.update([[9.0, 9.0], [9.0, 9.0], [-1.0, 0.0]])
    ensemble.update([[9.0, 9.0], [0.0, 1.0], [9.0, 9.0]])
    action = ensemble.update([[1.0, 0.0], [9.0, 9.0], [9.0, 9.0]])
    # Cosines with the newest: -1, 0 and 1, so the shares are as 1, e^2 and e^4.
    a, b, c = 1.0, math.exp(2.0), math.exp(4.0)
    np.testing.assert_allclose(action, [(c - a) / (a + b + c), b / (a + b + c)], rtol=1e-5)


def test_reset_equals_new() -> None:
    used, fresh = (ActionEnsemble(EnsembleSpec(horizon=2)) for _ in range(2))
    used.update([[5.0], [6.0]])
    used.reset()
    assert used.update([[1.0], [2.0]]) == fresh.update([[1.0], [2.0]])


def test_a_standing_policy_is_no_division_by_zero() -> None:
    spec = EnsembleSpec(horizon=2, weights=EnsembleWeights.AGREEMENT, strength=1.0)
    assert ActionEnsemble(spec).update(np.zeros((2, 3))).tolist() == [0.0, 0.0, 0.0]


def test_the_chunk_given_is_not_kept() -> None:
    ensemble = ActionEnsemble(EnsembleSpec(horizon=2))
    chunk = np.array([[1.0], [2.0]])
    ensemble.update(chunk)
    chunk[:] = 99.0
    assert ensemble.update([[4.0], [0.0]])[0] == pytest.approx((2.0 + 4.0) / 2.0)


def test_too_short_a_chunk_is_named() -> None:
    with pytest.raises(ValueError, match=r"chunk has shape \(2, 1\); an ensemble over 3 chunks"):
        ActionEnsemble(EnsembleSpec(horizon=3)).update([[1.0], [2.0]])
    with pytest.raises(ValueError, match="horizon must be at least 1, got 0"):
        ActionEnsemble(EnsembleSpec(horizon=0))
