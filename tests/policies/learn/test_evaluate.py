from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

pytest.importorskip("gymnasium")

from policies import Observation, PolicyOutput
from policies.learn.evaluate import Condition, evaluate, summarize, table, wilson


class Lamp:
    """Success when the policy says 1 at least three times; the scene's parity is its brightness."""

    horizon_steps = 6

    def __init__(self) -> None:
        self.unwrapped = self

    def reset(self, *, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        self._count, self._step = 0, 0
        self._light = 200 * (options["scene"] % 2)
        self._swap = options["swap_instruction"]
        return self._see()

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self._step += 1
        self._count += int(action[0] == 1)
        obs, info = self._see()
        return obs, 0.0, False, self._step >= self.horizon_steps, info

    def _see(self) -> tuple[dict[str, Any], dict[str, Any]]:
        done = self._count >= 3
        info = {
            "instruction": "off" if self._swap else "on",
            "success": done,
            "grasped": self._count > 0,
            "other_grasped": False,
            "wrong_object": not done and self._step == self.horizon_steps,
        }
        return {"image": np.full((4, 4, 3), self._light, np.uint8)}, info


class Bright:
    name = "bright"
    signals: frozenset[str] = frozenset()

    def reset(self, instruction: str) -> None:
        self._on = instruction == "on"

    def act(self, observation: Observation) -> PolicyOutput:
        lit = self._on and observation.image.mean() > 100
        return PolicyOutput(action=np.array([float(lit)]))


def rates(**condition: Any) -> dict[str, Any]:
    chosen = Condition(name="x", **condition)
    return summarize(chosen, evaluate(Lamp(), Bright(), range(10), chosen))


def test_rates_are_counted_per_scene() -> None:
    row = rates()
    assert row["success_at_end"]["hits"] == 5
    assert row["success_once"]["hits"] == 5
    assert row["picked_named"]["hits"] == 5
    assert row["wrong_object"]["hits"] == 5
    assert row["failed_scenes"] == [0, 2, 4, 6, 8]
    assert row["mean_steps_to_success"] == 2.0
    assert "5/10" in table([row])


def test_black_picture_and_swapped_instruction_reach_the_policy() -> None:
    assert rates(black=True)["success_once"]["hits"] == 0
    assert rates(swap_instruction=True)["success_once"]["hits"] == 0


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (7, 10), (93, 100), (100, 100)])
def test_wilson_equals_scipy(hits: int, n: int) -> None:
    interval = binomtest(hits, n).proportion_ci(method="wilson")
    np.testing.assert_allclose(wilson(hits, n), [interval.low, interval.high], atol=1e-9)
