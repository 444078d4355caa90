"""The cases of the fault table, each over more than its one input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from monitor import Mode, Monitor, Step
from tests.monitor.faults.cases import codes, first, run

Make = Callable[..., Monitor]
Calm = Callable[..., list[Step]]


@pytest.mark.parametrize("at", [0, 3, 20])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_1_a_non_finite_action_halts_in_one_step(
    make_monitor: Make, calm_stream: Calm, at: int, bad: float, dtype: type
) -> None:
    action: Any = np.array([0.01, bad, 0, 0, 0, bad, 1.0], dtype=dtype)
    decisions = run(
        make_monitor(), calm_stream(at + 3, lambda t: {"action": action} if t == at else {})
    )
    hit = decisions[at]
    assert "NONFINITE_ACTION" in codes(hit)
    fault = next(f for f in hit.faults if f.code == "NONFINITE_ACTION")
    assert (fault.detail["dims"], fault.detail["step"]) == ([1, 5], at)
    assert hit.mode is Mode.HALT
    assert [d.action for d in decisions[at:]] == [None] * 3
    assert all(d.mode is Mode.TASK for d in decisions[:at])


def test_1_the_window_keeps_a_hole(make_monitor: Make, calm_stream: Calm) -> None:
    nan = {"action": np.full(7, np.nan)}
    monitor = make_monitor(faults={"respond": {"NONFINITE_ACTION": "alert"}})
    decisions = run(monitor, calm_stream(30, lambda t: nan if t == 10 else {}))
    unknown = [t for t, d in enumerate(decisions) if d.metrics["A-PI"] is None]
    assert unknown == [*range(7), *range(10, 18)]
    assert np.isfinite(decisions[10].action).all() if decisions[10].action is not None else False


@pytest.mark.parametrize("row", range(7))
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_2_bad_logits_name_their_token(make_monitor: Make, row: int, bad: float) -> None:
    logits = np.zeros((7, 16), dtype=np.float32)
    logits[row, 3] = bad
    decision = make_monitor().update(Step(action=np.zeros(7), token_logits=logits))
    fault = next(f for f in decision.faults if f.code == "NONFINITE_LOGITS")
    assert fault.detail["tokens"] == [row]
    assert decision.metrics["TB-E"] is None
    assert decision.mode is Mode.RECOVER


def test_2_half_precision_overflow_is_seen_and_a_mask_is_legal(make_monitor: Make) -> None:
    with np.errstate(over="ignore"):
        half = np.array([[70000.0, 1.0, 2.0]]).astype(np.float16)
    assert "NONFINITE_LOGITS" in codes(make_monitor().update(Step(token_logits=half)))
    masked = np.array([[1.0, 2.0, -np.inf]])
    got = make_monitor().update(Step(action=np.zeros(7), token_logits=masked))
    assert not got.faults
    entropy = got.metrics["TB-E"]
    assert entropy is not None
    assert entropy * np.log(3) == pytest.approx(0.582, abs=1e-3)


@pytest.mark.parametrize("with_logits", [True, False])
def test_3_a_policy_that_ignores_the_picture(make_monitor: Make, with_logits: bool) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(7, 256)) if with_logits else None
    action = [0.0096, 0.01071, -0.0027, -0.0016, -0.015, -0.0193, 0.0]
    monitor = make_monitor()
    frames = rng.integers(0, 256, (10, 24, 24, 3), dtype=np.uint8)
    decisions = run(
        monitor, [Step(action=action, token_logits=logits, image=frame) for frame in frames]
    )
    alarms = [t for t, d in enumerate(decisions) if "VISION_BYPASS" in codes(d)]
    assert alarms[0] == 7
    same_picture = [Step(action=action, token_logits=logits, image=frames[0])] * 20
    assert not any("VISION_BYPASS" in codes(d) for d in run(make_monitor(), same_picture))


@pytest.mark.parametrize("with_pose", [True, False])
def test_4_a_frozen_policy_stalls_then_recovers_then_halts(
    make_monitor: Make, with_pose: bool
) -> None:
    rng = np.random.default_rng(1)
    d = np.r_[np.linspace(0.3, 0.03, 40), np.full(60, 0.03)]
    monitor, decisions = make_monitor(), []
    for t in range(100):
        action = np.full(7, 0.007) if t < 40 else 1e-4 * rng.normal(size=7)
        place = [0.3 - d[t], 0.0, 0.1] if with_pose else None
        decisions.append(
            monitor.update(Step(action=action, goal_distance=d[t], tcp_position=place))
        )
    start = first(decisions, "STALL")
    assert 40 < start <= 40 + 16
    assert decisions[start].mode is Mode.RECOVER
    assert decisions[-1].mode is Mode.HALT


def test_4_standing_still_after_success_or_while_gripping_is_right(make_monitor: Make) -> None:
    still: dict[str, Any] = {
        "tcp_position": [0.3, 0.0, 0.1],
        "goal_distance": 0.05,
        "action": np.zeros(7),
    }
    solved = run(make_monitor(), [Step(**still, success=t >= 2) for t in range(60)])
    assert not any(codes(d) for d in solved)
    assert all((d.score or 0.0) < 0.2 for d in solved)
    grips = [Step(**still, gripper=0.5 + 0.5 * np.cos(0.8 * t)) for t in range(60)]
    assert not any("STALL" in codes(d) for d in run(make_monitor(), grips))
    lost = run(make_monitor(), [Step(**still, success=t == 3) for t in range(20)])
    assert first(lost, "DROP") == 3 + 8
    flicker = run(make_monitor(), [Step(**still, success=t in {3, 4, 9, 15}) for t in range(20)])
    assert not any("DROP" in codes(d) for d in flicker)


@pytest.mark.parametrize("every", [2, 4, 9])
@pytest.mark.parametrize("told", [-1.0, 1.0])
def test_4_a_gripper_sensor_that_flickers_hides_no_stall(
    make_monitor: Make, every: int, told: float
) -> None:
    steady = Step(
        action=[0.0] * 6 + [told], tcp_position=[0.3, 0.0, 0.1], goal_distance=0.3, gripper=0.5
    )
    blinking = [replace(steady, gripper=0.5 if t % every else None) for t in range(40)]
    expected = first(run(make_monitor(), [steady] * 40), "STALL")
    assert first(run(make_monitor(), blinking), "STALL") == expected


@pytest.mark.parametrize("every", [2, 3])
def test_3_a_step_without_logits_frees_no_blind_policy(make_monitor: Make, every: int) -> None:
    rng, logits = np.random.default_rng(3), np.eye(7, 16)
    steps = [
        Step(
            action=np.full(7, 0.02),
            token_logits=logits if t % every else None,
            image=rng.integers(0, 256, (8, 8, 3), dtype=np.uint8),
        )
        for t in range(40)
    ]
    assert first(run(make_monitor(), steps), "VISION_BYPASS") <= 16


def test_3_a_resting_arm_without_logits_is_not_blind(make_monitor: Make) -> None:
    rng = np.random.default_rng(4)
    pictures = [rng.integers(0, 256, (8, 8, 3), dtype=np.uint8) for _ in range(20)]
    rests = [Step(action=np.zeros(7), image=image, gripper=1.0) for image in pictures]
    assert not any("VISION_BYPASS" in codes(d) for d in run(make_monitor(), rests))
    moves = [Step(action=np.full(7, 0.03), image=image, gripper=1.0) for image in pictures]
    assert first(run(make_monitor(), moves), "VISION_BYPASS") == 7


def test_5_actions_of_another_normalisation(make_monitor: Make) -> None:
    rng = np.random.default_rng(2)
    monitor = make_monitor(faults={"unnorm_limits": (0.03, 0.03, 0.03)})
    raw = [Step(action=a) for a in rng.uniform(-1, 1, (20, 7))]
    decisions = run(monitor, raw)
    assert first(decisions, "UNNORM_MISMATCH") == 7
    assert "ACTION_RANGE" in codes(decisions[0])
    assert decisions[7].mode is Mode.HALT
    right = [Step(action=a * 0.03) for a in rng.uniform(-1, 1, (20, 7))]
    assert not any(codes(d) for d in run(make_monitor(), right))


@pytest.mark.parametrize("told", [False, np.False_, 0, np.array(False), torch.tensor(False)])
@pytest.mark.parametrize("count", [7, 68])
def test_6_whatever_says_no_and_however_many_values_came(
    make_monitor: Make, told: Any, count: int
) -> None:
    decision = make_monitor().update(Step(action=np.zeros(count), decode_ok=told))
    assert codes(decision) == {"MALFORMED_TOKENS"}
    assert decision.mode is Mode.RECOVER


def test_6_a_malformed_decode_recovers_and_zeros_are_not_calm(make_monitor: Make) -> None:
    for action in (None, np.zeros(7)):
        decision = make_monitor().update(Step(action=action, decode_ok=False))
        assert codes(decision) == {"MALFORMED_TOKENS"}
        assert decision.mode is Mode.RECOVER


def test_7_tokens_off_the_action_bins(make_monitor: Make) -> None:
    rng = np.random.default_rng(3)
    logits = np.full((7, 32000), -8.0)
    logits[:, 31744:] = rng.normal(size=(7, 256))
    zero = np.zeros(7)
    good = make_monitor().update(
        Step(action=zero, token_logits=logits, action_token_range=(31744, 32000))
    )
    assert not good.faults
    assert good.metrics["TB-E"] == pytest.approx(0.51, abs=0.03)
    assert good.metrics["TB-E_bins"] == pytest.approx(0.91, abs=0.03)
    assert good.metrics["action_mass"] == pytest.approx(0.975, abs=0.01)
    shifted = logits.copy()
    shifted[2, 5] = 9.0
    for bad, span in ((shifted, (31744, 32000)), (logits, (31000, 31256))):
        decision = make_monitor().update(
            Step(action=zero, token_logits=bad, action_token_range=span)
        )
        assert "OFF_VOCAB_TOKEN" in codes(decision)


def test_7_a_sampled_token_off_the_bins_though_the_likeliest_is_on_them(
    make_monitor: Make,
) -> None:
    logits = np.full((7, 320), -8.0)
    logits[:, 64:] = np.random.default_rng(3).normal(size=(7, 256))
    ids = np.full(7, 100)
    for bad in (None, 3, 319):
        chosen = ids.copy()
        chosen[4] = 100 if bad is None else bad
        step = Step(
            action=np.zeros(7), token_logits=logits, token_ids=chosen, action_token_range=(64, 319)
        )
        decision = make_monitor().update(step)
        assert ("OFF_VOCAB_TOKEN" in codes(decision)) == (bad is not None)
        assert decision.metrics["tokens_outside"] == (None if bad is None else 1.0)


def test_8_a_gripper_that_does_not_answer(make_monitor: Make) -> None:
    def stream(opening: Callable[[int], float], command: Callable[[int], float]) -> list[Step]:
        return [
            Step(action=[0.01, 0, 0, 0, 0, 0, command(t)], gripper=opening(t)) for t in range(40)
        ]

    dead = run(make_monitor(), stream(lambda t: 1.0, lambda t: -1.0 if t >= 5 else 1.0))
    assert first(dead, "GRIPPER_NO_RESPONSE") == 19
    for opening in (lambda t: 1.0 if t < 7 else 0.4, lambda t: 0.0):
        alive = run(make_monitor(), stream(opening, lambda t: -1.0 if t >= 5 else 1.0))
        assert not any("GRIPPER_NO_RESPONSE" in codes(d) for d in alive[5:19])


RELATIVE = {"open": -1.0, "close": 1.0, "relative": True}


@pytest.mark.parametrize(
    ("gripper", "told", "opening", "at"),
    [
        # Half-way is where an absolute command may go from open, and asks for an answer.
        ({}, [1.0] * 3 + [0.0] * 37, [1.0] * 40, 17),
        ({}, [1.0] * 3 + [0.0] * 37, [1.0] * 4 + [0.8, 0.6] + [0.5] * 34, None),
        # As a change of the opening it asks for nothing.
        (RELATIVE, [0.0] * 5 + [1.0] * 5 + [0.0] * 30, [1.0] * 6 + [0.6] + [0.3] * 33, None),
        (RELATIVE, [0.0] * 40, [0.5] * 40, None),
        (RELATIVE, [0.0] * 5 + [1.0] * 35, [1.0] * 40, 19),
    ],
)
def test_8_a_command_half_way(
    make_monitor: Make, gripper: dict[str, Any], told: list[float], opening: list[float],
    at: int | None,
) -> None:  # fmt: skip
    steps = [
        Step(action=[0.01, 0, 0, 0, 0, 0, grip], gripper=there)
        for grip, there in zip(told, opening, strict=True)
    ]
    decisions = run(make_monitor(robot={"gripper": gripper}), steps)
    seen = [t for t, d in enumerate(decisions) if "GRIPPER_NO_RESPONSE" in codes(d)]
    assert (seen[0] if seen else None) == at


def test_9_nothing_leaks_into_the_next_episode(make_monitor: Make) -> None:
    monitor = make_monitor()
    rng = np.random.default_rng(4)
    for _ in range(20):
        monitor.update(Step(action=rng.uniform(-0.05, 0.05, 7), goal_distance=rng.uniform()))
    monitor.reset()
    decision = monitor.update(Step(action=np.zeros(7), goal_distance=0.3))
    assert decision.step == 0
    assert decision.mode is Mode.TASK
    assert decision.metrics["A-PI"] is None
    assert decision.metrics["NIS"] is None
    assert decision.belief is not None
    assert decision.belief.distance == 0.3
