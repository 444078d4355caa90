from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from monitor import Calibration, Evidence, Monitor, MonitorConfig, Step, TailTable
from monitor.scoring.surprise import _surprise, surprise_table

TABLE = TailTable(levels=(0.0, 0.5, 0.9, 0.99), values=(0.0, 1.0, 2.0, 3.0), tail_scale=0.5)


def surprise_of(table: TailTable) -> Callable[[float], float]:
    rows = surprise_table(table, 5.0)
    tables = rows.reshape(-1).tolist()
    return lambda x: _surprise(tables, 0, rows.shape[1], x)


def test_surprise_counts_decades_of_the_tail() -> None:
    surprise = surprise_of(TABLE)
    assert surprise(-1.0) == 0.0
    assert surprise(1.0) == pytest.approx(-np.log10(0.5) / 5)
    assert surprise(3.0) == pytest.approx(0.4)
    assert surprise(3.0 + 0.5 * np.log(10.0) * 3) == pytest.approx(1.0)
    assert surprise(1e300) == 1.0
    grid = [surprise(x) for x in np.linspace(-1, 9, 400)]
    assert (np.diff(grid) >= 0.0).all()


def test_a_table_with_equal_values_is_read() -> None:
    flat = TailTable(levels=(0.0, 0.5, 0.99), values=(0.0, 0.0, 0.0), tail_scale=1.0)
    surprise = surprise_of(flat)
    assert surprise(-1.0) == 0.0
    assert surprise(0.5) > 0.4


def scoring(combine: str, **weights: float) -> Monitor:
    """A monitor whose signals all have TABLE, and a window of 4."""
    names = {name.replace("_", "-"): w for name, w in weights.items()}
    calibration = Calibration(
        policy="p", env="e", alpha=0.1, n_success=1, tau_recover=2.0, tau_halt=2.0,
        signals=dict.fromkeys(names, TABLE),
    )  # fmt: skip
    config = MonitorConfig.model_validate(
        {"metrics": {"window": 4}, "score": {"signals": names, "combine": combine}}
    )
    return Monitor(config, action_low=[-1.0], action_high=[1.0], calibration=calibration)


def score(monitor: Monitor, **signals: float) -> float | None:
    named = {name.replace("_", "-"): x for name, x in signals.items()}
    return monitor.replay(Evidence(action=(0.0,), signals=named)).score


@pytest.mark.parametrize(
    ("combine", "expected"),
    [
        ("max", 0.4),
        ("mean_top2", (0.4 + np.log10(2.0) / 5) / 2),
        ("weights", (1.0 * 0.4 + 3.0 * np.log10(2.0) / 5) / 8.0),
    ],
)
def test_ways_to_combine(combine: str, expected: float) -> None:
    monitor = scoring(combine, TB_E=1.0, TB_D=3.0, TB_TP=4.0, TB_PCS=0.0, EV=9.0)
    # A weight of zero leaves a signal out, and so does not being known.
    assert score(monitor, TB_E=3.0, TB_D=1.0, TB_TP=0.0, TB_PCS=9.0) == pytest.approx(expected)
    assert scoring(combine, TB_E=1.0).replay(Evidence(action=(0.0,))).score is None
    alone = scoring(combine, TB_E=2.0, TB_D=1.0)
    assert score(alone, TB_E=3.0) == pytest.approx(0.4)


def test_peak_over_the_window_then_gone_and_unknown_never_calms() -> None:
    monitor = scoring("max", TB_E=1.0)
    assert score(monitor) is None
    assert score(monitor, TB_E=3.0) == pytest.approx(0.4)
    for _ in range(3):
        assert score(monitor, TB_E=0.0) == pytest.approx(0.4)
    assert score(monitor, TB_E=0.0) == 0.0
    held = scoring("max", TB_E=1.0)
    score(held, TB_E=3.0)
    for _ in range(20):
        assert score(held) == pytest.approx(0.4)


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
