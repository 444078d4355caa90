"""The cases of the fault table, each over more than its one input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from monitor import Mode, Monitor, MonitorConfig, Step
from tests.monitor.faults.cases import codes, first, run

Make = Callable[..., Monitor]
Calm = Callable[..., list[Step]]


def test_14_black_frozen_and_misformed_pictures(make_monitor: Make) -> None:
    rng = np.random.default_rng(5)
    picture = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)

    def step(t: int, image: Any, moving: bool = True) -> Step:
        action = rng.uniform(-0.05, 0.05, 7)
        return Step(action=action, image=image, tcp_position=[0.01 * t * moving, 0, 0])

    assert "CAMERA_BLACK" in codes(make_monitor().update(step(0, np.zeros_like(picture))))
    frozen = run(make_monitor(), [step(t, picture) for t in range(20)])
    assert first(frozen, "CAMERA_FROZEN") == 4
    still = run(make_monitor(), [step(t, picture, moving=False) for t in range(20)])
    assert not any("CAMERA_FROZEN" in codes(d) for d in still)
    for bad in (picture / 255.0, picture[None], picture.transpose(2, 0, 1), picture[..., 0], "x"):
        assert "CAMERA_FORMAT" in codes(make_monitor().update(step(0, bad)))


def test_15_late_and_stale_replies(make_monitor: Make) -> None:
    lates = [0.3, 0.3, None, 0.3, 0.1, 0.3]
    decisions = run(make_monitor(), [Step(action=np.zeros(7), latency_s=x) for x in lates])
    assert ["LATENCY" in codes(d) for d in decisions] == [False] * 3 + [True, False, False]
    stale = Step(policy_error="STALE_ACTION: reply 1 to request 2")
    assert codes(make_monitor().update(stale)) == {"STALE_ACTION"}
    recover = make_monitor(faults={"respond": {"LATENCY": "halt"}})
    assert run(recover, [Step(action=np.zeros(7), latency_s=1.0)] * 3)[-1].mode is Mode.HALT


def test_17_a_short_spike_alarms_though_the_mean_is_calm(
    make_monitor: Make, calm_stream: Calm
) -> None:
    rng = np.random.default_rng(6)

    def spike(t: int) -> dict[str, Any]:
        flat = {"token_logits": rng.normal(size=(7, 256)), "token_ids": None}
        return flat if 60 <= t <= 63 else {}

    decisions = run(make_monitor(), calm_stream(80, spike, start=1.2))
    start = next(t for t, d in enumerate(decisions) if d.mode is not Mode.TASK)
    assert 60 <= start <= 62


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (Step(policy_error="boom"), "POLICY_ERROR"),
        (Step(action=np.zeros(7), env_error="boom"), "ENV_ERROR"),
        (Step(), "ACTION_MISSING"),
        (Step(action=np.zeros(6)), "ACTION_SHAPE"),
        (Step(action=np.zeros((1, 7))), "ACTION_SHAPE"),
        (Step(action="nonsense"), "ACTION_SHAPE"),
        (Step(action=[1, 2, [3]]), "ACTION_SHAPE"),
        (Step(action=object()), "ACTION_SHAPE"),
    ],
)
def test_no_usable_action_halts_by_default_and_otherwise_holds(
    make_monitor: Make, step: Step, code: str
) -> None:
    decision = make_monitor().update(step)
    assert codes(decision) == {code}
    assert decision.mode is Mode.HALT
    assert decision.action is None
    for response in ("alert", "recover", "ignore"):
        softer = make_monitor(faults={"respond": {code: response}}).update(step)
        assert softer.mode is (Mode.RECOVER if response == "recover" else Mode.TASK)
        assert softer.action is not None
        assert np.isfinite(softer.action).all()
        assert bool(softer.alerts) == (response != "ignore")


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("tcp_position", [0.0, np.nan, 0.0], "NONFINITE_POSE"),
        ("tcp_position", [0.0, 1.0], "POSE_SHAPE"),
        ("tcp_position", [1e9, 0.0, 0.0], "POSE_RANGE"),
        ("tcp_quaternion", [np.inf, 0.0, 0.0, 0.0], "NONFINITE_POSE"),
        ("tcp_quaternion", [0.0, 0.0, 0.0, 0.0], "POSE_RANGE"),
        ("tcp_quaternion", [1e300, 0.0, 0.0, 0.0], "POSE_RANGE"),
        ("goal_distance", np.nan, "NONFINITE_DISTANCE"),
        ("goal_distance", -0.1, "DISTANCE_RANGE"),
        ("goal_distance", [0.1, 0.2], "DISTANCE_SHAPE"),
        ("gripper", np.inf, "NONFINITE_GRIPPER"),
        ("latency_s", np.nan, "NONFINITE_LATENCY_VALUE"),
        ("token_logits", np.zeros(7), "LOGITS_SHAPE"),
        ("token_logits", np.zeros((0, 5)), "LOGITS_SHAPE"),
        ("token_logits", np.zeros((7, 1)), "LOGITS_SHAPE"),
        ("token_logits", "x", "LOGITS_SHAPE"),
    ],
)
def test_a_broken_sensor_is_a_fault_and_its_value_unknown(
    make_monitor: Make, field: str, value: Any, code: str
) -> None:
    decision = make_monitor().update(Step(action=np.zeros(7), **{field: value}))
    assert codes(decision) == {code}
    assert [alert.code for alert in decision.alerts if alert.kind == "fault"] == [code]
    fault = decision.faults[0]
    assert fault.detail["field"] == field
    assert f"step 0: {field}" in fault.message


def test_ids_that_are_no_columns_are_a_fault(make_monitor: Make) -> None:
    for ids in ([99] * 7, [0.5] * 7, [0], [-1] * 7, [np.nan] * 7):
        step = Step(action=np.zeros(7), token_logits=np.zeros((7, 9)), token_ids=ids)
        decision = make_monitor().update(step)
        assert codes(decision) == {"TOKEN_IDS"}
        assert decision.metrics["alpha"] is None


@pytest.mark.parametrize("scale", [0.5 / 0.03, 3.0, -3.0])
def test_5_another_datasets_scale_inside_the_action_space(make_monitor: Make, scale: float) -> None:
    rng = np.random.default_rng(7)
    stream = rng.uniform(0.5, 1.0, (20, 7)) * rng.choice([-0.03, 0.03], (20, 7))
    one = np.ones(7)
    limits = MonitorConfig.model_validate({"faults": {"unnorm_limits": (0.03, 0.03, 0.03)}})
    wrong = run(
        Monitor(limits, action_low=-one, action_high=one), [Step(action=scale * a) for a in stream]
    )
    assert first(wrong, "UNNORM_MISMATCH") == 7
    assert "ACTION_RANGE" not in codes(wrong[0])
    right = run(Monitor(limits, action_low=-one, action_high=one), [Step(action=a) for a in stream])
    assert not any(codes(d) for d in right)


@pytest.mark.parametrize("command", [1.0, -1.0])
def test_8_a_constant_command_to_a_gripper_of_another_convention(
    make_monitor: Make, command: float
) -> None:
    # The environment reads the sign the other way round: told to open it stays shut.
    opening = 0.0 if command > 0.0 else 1.0
    steps = [Step(action=[0.01, 0, 0, 0, 0, 0, command], gripper=opening) for _ in range(30)]
    assert first(run(make_monitor(), steps), "GRIPPER_NO_RESPONSE") == 14


def test_10_a_buffer_that_the_caller_overwrites(make_monitor: Make) -> None:
    torch = pytest.importorskip("torch")
    buffer, own = torch.zeros(7), make_monitor()
    other, reused = np.zeros(7), make_monitor()
    for t in range(12):
        buffer += 0.003 * (-1) ** t * t
        other = other + 0.003 * (-1) ** t * t
        ours, theirs = own.update(Step(action=buffer)), reused.update(Step(action=other.copy()))
        for name in ("A-PI", "A-VI", "A-AI"):
            assert ours.metrics[name] == pytest.approx(theirs.metrics[name], abs=1e-6)


def test_17_after_the_first_success_hovering_is_no_stall_but_losing_it_is_a_drop(
    make_monitor: Make, calm_stream: Calm
) -> None:
    place = calm_stream(30)[-1].tcp_position

    def hover(t: int) -> dict[str, Any]:
        if t < 30:
            return {"success": False}
        return {"success": t < 90, "tcp_position": place, "action": np.zeros(7)}

    decisions = run(make_monitor(), calm_stream(120, hover))
    assert not any("STALL" in codes(d) for d in decisions)
    assert all(d.mode is Mode.TASK for d in decisions)
    assert first(decisions, "DROP") == 90 + 7
