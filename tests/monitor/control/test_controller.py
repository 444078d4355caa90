from __future__ import annotations

import numpy as np
import pytest

from monitor import Mode
from monitor.config import ControllerConfig
from monitor.control.controller import (
    MODES,
    ControllerLimits,
    ControllerState,
    Demand,
    aggregate,
    transition,
)

NAN = float("nan")


class Controller:
    """The state, its limits, and the two functions in the order in which a step calls them."""

    def __init__(self, limits: ControllerLimits) -> None:
        self.limits = limits
        self.reset()

    def reset(self) -> None:
        self.state = ControllerState()

    def update(self, score: float | None, demand: Demand) -> Mode:
        decided = aggregate(self.state, NAN if score is None else score, self.limits)
        transition(self.state, decided, float(demand), self.limits)
        return MODES[self.state.mode]


def build(**changes: float | str) -> Controller:
    given = {
        "tau_recover": 0.4, "tau_halt": 0.8, "hysteresis": 0.1, "calm_steps": 2, "dwell": 3,
        "patience": 8, "budget": 2, "halt_after": 1,
    }  # fmt: skip
    config = ControllerConfig.model_validate({**given, **changes})
    return Controller(ControllerLimits.from_config(config, None, None))


def modes(controller: Controller, scores: list[float | None], demand: Demand = Demand.NONE) -> str:
    return "".join(controller.update(score, demand).value[0] for score in scores)


def test_bands_of_equation_24() -> None:
    assert modes(build(), [0.39]) == "T"
    assert modes(build(), [0.4]) == "R"
    assert modes(build(), [0.8]) == "H"


def test_recover_ends_only_after_dwell_below_the_hysteresis_for_some_steps() -> None:
    assert modes(build(), [0.5, 0.1, 0.1, 0.1]) == "RRRT"
    # 0.35 is under the threshold but within the hysteresis.
    assert modes(build(), [0.5, 0.35, 0.35, 0.35, 0.2, 0.2, 0.2]) == "RRRRRTT"
    assert modes(build(), [0.5, 0.1, 0.35, 0.1, 0.35, 0.1, 0.1]) == "RRRRRRT"


def test_patience_and_budget_end_in_halt() -> None:
    got = modes(build(), [0.5] * 20)
    assert got == "R" * 16 + "HHHH"
    assert modes(build(budget=0), [0.5]) == "H"


def test_halt_stays_until_reset() -> None:
    controller = build()
    assert modes(controller, [0.9, 0.0, None, 0.0]) == "HHHH"
    controller.reset()
    assert modes(controller, [0.0]) == "T"


def test_published_running_maximum_never_calms() -> None:
    controller = build(
        aggregation="running_max", hysteresis=0.0, calm_steps=1, dwell=0, patience=100
    )
    assert modes(controller, [0.1, 0.5, 0.0, 0.0, 0.0]) == "TRRRR"


def test_demands_of_faults() -> None:
    assert modes(build(), [0.0], Demand.HALT) == "H"
    assert modes(build(), [None], Demand.RECOVER) == "R"
    # While the fault is there, no calm score ends the recovery.
    assert modes(build(), [0.0] * 9, Demand.RECOVER) == "R" * 9


def test_an_unknown_score_starts_nothing() -> None:
    assert modes(build(), [None] * 5) == "TTTTT"


def test_halt_after_several_critical_steps() -> None:
    assert modes(build(halt_after=3), [0.9, 0.9, 0.9]) == "RRH"
    assert modes(build(halt_after=3), [0.9, 0.1, 0.9, 0.9]) == "RRRR"


@pytest.mark.parametrize("seed", range(20))
def test_invariants_on_random_scores(seed: int) -> None:
    rng = np.random.default_rng(seed)
    controller = build()
    previous, attempts = Mode.TASK, 0
    for _ in range(200):
        score = None if rng.uniform() < 0.1 else float(rng.uniform(0, 0.79))
        mode = controller.update(score, Demand.NONE)
        if previous is Mode.HALT:
            assert mode is Mode.HALT
        attempts = max(attempts, controller.state.attempts)
        assert attempts <= 2
        previous = mode
