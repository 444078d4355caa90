from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from monitor import Calibration, Monitor, Step, TailTable
from monitor.config import ScoreConfig
from monitor.score import Score, Surprise, combine

TABLE = TailTable(levels=(0.0, 0.5, 0.9, 0.99), values=(0.0, 1.0, 2.0, 3.0), tail_scale=0.5)


def test_surprise_counts_decades_of_the_tail() -> None:
    surprise = Surprise(TABLE, 5.0)
    assert surprise(-1.0) == 0.0
    assert surprise(1.0) == pytest.approx(-np.log10(0.5) / 5)
    assert surprise(3.0) == pytest.approx(0.4)
    assert surprise(3.0 + 0.5 * np.log(10.0) * 3) == pytest.approx(1.0)
    assert surprise(1e300) == 1.0
    grid = [surprise(x) for x in np.linspace(-1, 9, 400)]
    assert (np.diff(grid) >= 0.0).all()


def test_a_table_with_equal_values_is_read() -> None:
    flat = TailTable(levels=(0.0, 0.5, 0.99), values=(0.0, 0.0, 0.0), tail_scale=1.0)
    surprise = Surprise(flat, 5.0)
    assert surprise(-1.0) == 0.0
    assert surprise(0.5) > 0.4


def test_ways_to_combine() -> None:
    pooled = {"a": 0.9, "b": 0.3, "c": 0.0}
    assert combine(pooled, {}, "max") == 0.9
    assert combine(pooled, {}, "mean_top2") == pytest.approx(0.6)
    assert combine(pooled, {"a": 1.0, "b": 3.0, "c": 0.0}, "weights") == pytest.approx(0.45)
    assert combine({}, {}, "max") is None


def test_peak_over_the_window_then_gone_and_unknown_never_calms() -> None:
    def build() -> Score:
        return Score(ScoreConfig(signals={"TI": 1.0}, combine="max"), 4, {"TI": TABLE})

    score = build()
    assert score.update({"TI": None}) is None
    assert score.update({"TI": 3.0}) == pytest.approx(0.4)
    for _ in range(3):
        assert score.update({"TI": 0.0}) == pytest.approx(0.4)
    assert score.update({"TI": 0.0}) == 0.0
    held = build()
    held.update({"TI": 3.0})
    for _ in range(20):
        assert held.update({}) == pytest.approx(0.4)


Change = Callable[[int], dict[str, Any]]


def entropy(t: int) -> dict[str, Any]:
    return {"token_logits": np.zeros((7, 256)), "token_ids": np.zeros(7, int)} if t >= 12 else {}


def jerk(t: int) -> dict[str, Any]:
    rng = np.random.default_rng(t)
    delta = rng.uniform(-0.05, 0.05, size=7)
    return {"action": delta, "tcp_position": delta[:3] + 0.3} if t >= 12 else {}


def reversal(t: int) -> dict[str, Any]:
    x = 0.03 * (-1) ** t
    return {"action": [x, 0, 0, 0, 0, 0, 1], "tcp_position": [0.3 + x, 0, 0]} if t >= 12 else {}


def stall(t: int) -> dict[str, Any]:
    still = {"action": [0.0] * 6 + [1.0], "tcp_position": [0.5, 0, 0.2], "goal_distance": 0.25}
    return still if t >= 12 else {}


def innovation(t: int) -> dict[str, Any]:
    return {"goal_distance": 0.7} if t >= 12 else {}


def test_a_confident_arm_that_closes_in_scores_near_zero(
    make_monitor: Callable[..., Monitor], calm_stream: Callable[..., list[Step]]
) -> None:
    for seed in range(5):
        monitor = make_monitor()
        decisions = [monitor.update(step) for step in calm_stream(30, seed=seed)]
        scores = [d.score for d in decisions if d.score is not None]
        assert max(scores) < 0.15
        assert not any(d.alerts for d in decisions)


@pytest.mark.parametrize("trouble", [entropy, jerk, reversal, stall, innovation])
def test_each_kind_of_trouble_raises_the_score_within_a_window(
    make_monitor: Callable[..., Monitor],
    calm_stream: Callable[..., list[Step]],
    trouble: Change,
) -> None:
    monitor = make_monitor(controller={"enforce": False})
    scores = [monitor.update(step).score or 0.0 for step in calm_stream(22, trouble)]
    assert max(scores[:12]) < 0.15
    assert max(scores[12:21]) > 0.35


def test_a_calibration_replaces_tables_and_thresholds(make_monitor: Callable[..., Monitor]) -> None:
    calibration = Calibration(
        policy="p", env="e", alpha=0.1, n_success=20, tau_recover=0.2, tau_halt=0.3,
        signals={"TB-E": TailTable(levels=(0.0, 0.9), values=(0.0, 0.01), tail_scale=0.01)},
    )  # fmt: skip
    monitor, other = make_monitor(calibration), make_monitor()
    assert (monitor.tau_recover, monitor.tau_halt) == (0.2, 0.3)
    step = Step(action=np.zeros(7), token_logits=np.eye(7, 9) * 4)
    judged, plain = monitor.update(step), other.update(step)
    assert judged.calibrated
    assert not plain.calibrated
    assert judged.score is not None
    assert plain.score is not None
    assert judged.score > plain.score
    assert monitor.pooled.keys() >= {"TB-E"}
