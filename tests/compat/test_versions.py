"""Which packages this runs beside; ``scripts/compat.sh`` brings the old ones."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import monitor
from monitor import Decision, Mode, Monitor, MonitorConfig, Step, load_config

OLD = {
    "numpy": "1.24.4",
    "gymnasium": "0.28.1",
    "transformers": "4.40.1",
    "tokenizers": "0.19.1",
}


@pytest.mark.skipif("VLAWATCH_COMPAT" not in os.environ, reason="for scripts/compat.sh alone")
def test_the_old_packages_are_really_here() -> None:
    assert {name: version(name) for name in OLD} == OLD
    assert "site-packages" in Path(monitor.__file__).parts


def test_the_shipped_configuration_reads() -> None:
    assert load_config("default").metrics == MonitorConfig().metrics


def test_a_monitor_runs_and_takes_torch_of_any_kind() -> None:
    torch = pytest.importorskip("torch")
    one, other = (Monitor(action_low=-np.ones(7), action_high=np.ones(7)) for _ in range(2))
    rng = np.random.default_rng(0)
    for index in range(60):
        action = 0.02 * rng.standard_normal(7)
        logits = 10 * np.eye(7, 256) + rng.standard_normal((7, 256))
        tool = np.array([0.3, 0.0, 0.2]) + 0.001 * index
        distance = 0.5 - 0.005 * index
        given = one.update(
            Step(action=action, token_logits=logits, tcp_position=tool, goal_distance=distance)
        )
        taken = other.update(
            Step(
                action=torch.tensor(action),
                token_logits=torch.tensor(logits),
                tcp_position=torch.tensor(tool),
                goal_distance=torch.tensor(distance, dtype=torch.float64),
            )
        )
        assert taken.mode is given.mode is Mode.TASK
        assert _known(taken) == pytest.approx(_known(given), rel=1e-5)
        assert all(value is None or np.isfinite(value) for value in given.metrics.values())
    assert given.metrics["TB-E"] is not None
    assert given.metrics["A-PI"] is not None
    assert given.score is not None


def _known(decision: Decision) -> dict[str, float]:
    return {name: value for name, value in decision.metrics.items() if value is not None}


def test_no_data_raises() -> None:
    watched = Monitor(action_low=-np.ones(7), action_high=np.ones(7))
    watched.update(Step(action=[np.nan] * 7, token_logits="x", tcp_position=[1], image=np.zeros(3)))
    assert watched.update(Step()).mode is Mode.HALT
