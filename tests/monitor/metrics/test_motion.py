from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from monitor import Evidence, Monitor, MonitorConfig

LOW = np.array([-0.05] * 3 + [-0.25] * 3 + [-1.0])
ORDERS = ("PI", "VI", "AI")


def batch(window: np.ndarray) -> list[np.ndarray]:
    """Straight from the definition, by np.diff."""
    count = len(window) - 3
    return [
        np.abs(np.diff(window, n=k, axis=0))[-count:].mean(axis=0) / 2 ** (k - 1) for k in (1, 2, 3)
    ]


def watch(
    low: np.ndarray, high: np.ndarray, window: int = 8, dt_s: float = 1.0, warmup: str = "none"
) -> Monitor:
    config = MonitorConfig.model_validate(
        {"metrics": {"window": window, "ti_dt_s": dt_s, "warmup": warmup}}
    )
    return Monitor(config, action_low=low, action_high=high)


def run(monitor: Monitor, evidence: Evidence) -> dict[str, float | None]:
    values = monitor.replay(evidence).metrics
    return {
        name: value
        for name, value in values.items()
        if name == "TI" or (name.startswith(("A-", "TCP-")) and "I" in name)
    }


@pytest.mark.parametrize("window", [4, 8, 12])
def test_stream_equals_batch_on_every_prefix(window: int) -> None:
    rng = np.random.default_rng(window)
    n = 40
    actions = rng.normal(size=(n, 7)) * 0.1
    places = np.cumsum(rng.normal(size=(n, 3)) * 0.02, axis=0)
    turns = Rotation.from_rotvec(rng.normal(size=(n, 3)))
    quaternions = np.roll(turns.as_quat(), 1, axis=1) * rng.choice([-1.0, 1.0], size=(n, 1))
    normal = np.clip((actions - LOW) / (-2 * LOW), 0.0, 1.0)
    steps = (turns[:-1].inv() * turns[1:]).as_rotvec()
    monitor = watch(LOW, -LOW, window)
    for t in range(n):
        values = run(
            monitor,
            Evidence(
                action=tuple(actions[t]),
                tcp_position=tuple(places[t]),
                tcp_quaternion=tuple(quaternions[t]),
            ),
        )
        if t + 1 < window:
            assert all(value is None for value in values.values())
            continue
        tail = slice(t + 1 - window, t + 1)
        w = steps[t + 1 - window : t]
        count = window - 3
        turned = [
            np.abs(w)[-count:].mean(axis=0),
            np.abs(np.diff(w, axis=0))[-count:].mean(axis=0) / 2,
            np.abs(np.diff(w, n=2, axis=0))[-count:].mean(axis=0) / 4,
        ]
        for order, a, p, o in zip(
            ORDERS, batch(normal[tail]), batch(places[tail]), turned, strict=True
        ):
            assert values[f"A-{order}"] == pytest.approx(a.mean(), abs=1e-12)
            assert values[f"A-{order}_p"] == pytest.approx(a[:3].mean(), abs=1e-12)
            assert values[f"A-{order}_o"] == pytest.approx(a[3:6].mean(), abs=1e-12)
            assert values[f"TCP-{order}_p"] == pytest.approx(p.mean(), abs=1e-12)
            assert values[f"TCP-{order}_o"] == pytest.approx(o.mean(), abs=1e-12)
            both = np.concatenate([p, o]).mean()
            assert values[f"TCP-{order}"] == pytest.approx(both, abs=1e-12)
        third = places[tail]
        for _ in range(3):
            third = np.gradient(third, axis=0)
        assert values["TI"] == pytest.approx(np.linalg.norm(third[-3]), abs=1e-12)


def test_a_hole_makes_its_own_metrics_unknown_for_a_whole_window() -> None:
    rng = np.random.default_rng(5)
    monitor = watch(LOW, -LOW)
    known = []
    for t in range(30):
        action = None if t == 12 else tuple(rng.uniform(LOW, -LOW))
        values = run(monitor, Evidence(action=action, tcp_position=tuple(rng.normal(size=3))))
        known.append((values["A-PI"] is not None, values["TCP-PI_p"] is not None))
    assert [a for a, _ in known] == [7 <= t < 12 or t >= 20 for t in range(30)]
    assert [p for _, p in known] == [t >= 7 for t in range(30)]
    assert values["TCP-PI"] is None


def test_the_replication_codes_zeros_are_to_be_had() -> None:
    monitor = watch(LOW, -LOW, warmup="zeros")
    calm = []
    for t in range(24):
        values = run(monitor, Evidence(action=None if t == 12 else tuple(LOW)))
        assert values["TCP-AI_p"] is values["TI"] is None  # an input that is absent is no calm
        calm.append(values["A-AI"])
    assert calm == [0.0] * 12 + [None] * 8 + [0.0] * 4  # and neither is a hole


def test_jerk_in_seconds_scales_by_the_cube_of_the_period() -> None:
    rng = np.random.default_rng(6)
    slow, fast = (watch(LOW, -LOW, dt_s=dt_s) for dt_s in (1.0, 0.2))
    for _ in range(9):
        evidence = Evidence(tcp_position=tuple(rng.normal(size=3)))
        a, b = run(slow, evidence)["TI"], run(fast, evidence)["TI"]
    assert a is not None
    assert b == pytest.approx(a * 125.0, rel=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 4, 14])
def test_any_number_of_dimensions(dim: int) -> None:
    rng = np.random.default_rng(dim)
    low = -np.ones(dim)
    monitor = watch(low, -low)
    actions = rng.uniform(-1.5, 1.5, size=(8, dim))
    for row in actions:
        values = run(monitor, Evidence(action=tuple(row)))
    expected = batch(np.clip((actions + 1) / 2, 0.0, 1.0))[2]
    assert values["A-AI"] == pytest.approx(expected.mean(), abs=1e-12)
    assert (values["A-AI_p"] is None) == (dim < 3)
    assert (values["A-AI_o"] is None) == (dim < 6)


def test_huge_actions_and_a_dimension_without_range_stay_finite() -> None:
    low, high = np.array([-1e-3, 0.0]), np.array([1e-3, 0.0])
    monitor = watch(low, high)
    for t in range(8):
        values = run(monitor, Evidence(action=(1e308 * (-1) ** t, 5.0)))
    assert values["A-PI"] == pytest.approx(0.5)
