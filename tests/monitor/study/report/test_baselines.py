"""Baselines on traces whose answer can be said by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor.study.report.baselines import (
    ALPHA,
    GAMMA,
    action_entropy,
    adaptive_conformal,
    path_loss,
    risk_rows,
)
from monitor.study.runs import Episode, Run


def episode(steps: list[dict[str, Any]], outcome: str = "success") -> Episode:
    given = [{"sent": [0.0], "faults": [], "evidence": {}, **step} for step in steps]
    return Episode(record={"outcome": outcome, "steps": len(given)}, steps=given)


def test_adaptive_conformal_against_its_definition() -> None:
    rng = np.random.default_rng(0)
    d = np.abs(0.4 - 0.01 * np.arange(40) + 0.02 * rng.standard_normal(40))
    residuals = np.abs(np.diff(d, n=2))
    alpha, missed = ALPHA, []
    for t in range(1, residuals.size):
        level = min(max(1.0 - alpha, 0.0), 1.0)
        missed.append(residuals[t] > np.quantile(residuals[:t], level))
        alpha += GAMMA * (ALPHA - missed[-1])
    expected = 0.6 * np.mean(missed) + 0.4 * residuals.mean() / d[0]
    assert adaptive_conformal(d.tolist()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("distances", "expected"),
    [
        ([], None),
        ([0.3, 0.2, 0.1], None),  # one forecast, and nothing to judge it by
        ([0.3, None, 0.2, None, 0.1, None], None),
        ([0.0] * 9, None),
        ([0.3] * 9, 0.0),
    ],
)
def test_adaptive_conformal_without_data(
    distances: list[float | None], expected: float | None
) -> None:
    assert adaptive_conformal(distances) == expected


def test_actions_that_never_change_have_no_entropy_and_uniform_ones_all() -> None:
    def entropy(rows: Any) -> float | None:
        steps = [{"evidence": {"action": list(row)}} for row in rows]
        return action_entropy(episode(steps), [-1.0, -1.0], [1.0, 1.0])

    assert entropy([(0.3, -0.2)] * 20) == 0.0
    grid = np.linspace(-1, 1, 16)
    assert entropy(np.stack([grid, grid], axis=1)) == pytest.approx(1.0)
    assert entropy([]) is None


def test_a_path_twice_as_long_as_the_way_costs_a_half() -> None:
    straight = [{"goal_distance": 0.4 - x, "tcp_position": [x, 0.0, 0.0]} for x in (0.0, 0.2, 0.4)]
    back = [*straight, *straight[::-1]]
    assert path_loss(episode(straight)) == pytest.approx(0.0)
    assert path_loss(episode(back)) == pytest.approx(0.5)
    assert path_loss(episode(back, "failure")) == 1.0
    assert path_loss(episode([{"tcp_position": [0, 0, 0]}])) is None


def test_scores_sort_better_than_chance(watched: Path) -> None:
    rows = {one.name: one for one in risk_rows(Run.load(watched))}
    assert rows["peak of the online score"].failure < rows["random"].failure
    assert rows["entropy of tokens, mean"].failure == pytest.approx(0.0, abs=1e-12)
    assert all(one.episodes == 31 and one.path is not None for one in rows.values())
    assert "inconsistency of plans" not in rows  # this policy plans one step
