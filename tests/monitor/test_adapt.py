"""A configuration made to fit a robot and a policy: what is left open, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from envs.robot import ROBOTS
from monitor import Monitor, MonitorConfig, Step
from monitor.adapt import adapt_config
from monitor.gym import MonitoredEnv

ONE = np.ones(7)


def world(**says: Any) -> Any:
    return SimpleNamespace(action_space=SimpleNamespace(low=-ONE, high=ONE), **says)


def test_what_says_nothing_changes_nothing() -> None:
    config = MonitorConfig()
    assert adapt_config(config, world(), SimpleNamespace()) == config


@pytest.mark.parametrize(
    ("robot", "expected"),
    [("widowx", (1.0, -1.0, False)), ("google_robot", (-1.0, 1.0, True))],
)
def test_the_gripper_follows_the_robot(robot: str, expected: tuple[float, float, bool]) -> None:
    fitted = adapt_config(MonitorConfig(), world(robot=ROBOTS[robot])).robot
    gripper = fitted.gripper
    assert (gripper.open, gripper.close, gripper.relative) == expected
    monitor = Monitor(MonitorConfig(robot=fitted), action_low=-ONE, action_high=ONE)
    monitor.update(Step(action=[0.0] * 6 + [expected[0]], gripper=1.0))
    retreat = monitor.update(Step(policy_error="STALE_ACTION: x", gripper=1.0))
    assert retreat.mode.value == "RECOVER"
    assert retreat.action is not None
    assert retreat.action[-1] == expected[0]  # an open, empty gripper stays open


def test_what_the_user_says_stands() -> None:
    given = {
        "robot": {"gripper": {"open": 0.5}},
        "faults": {"unnorm_limits": (0.2, 0.2, 0.2)},
    }
    fitted = adapt_config(
        MonitorConfig.model_validate(given),
        world(robot=ROBOTS["google_robot"], translation_q99_m=(0.01, 0.01, 0.01)),
        SimpleNamespace(translation_q99_m=(0.03, 0.03, 0.03)),
    )
    assert (fitted.robot.gripper.open, fitted.robot.gripper.close) == (0.5, 1.0)
    assert fitted.faults.unnorm_limits == (0.2, 0.2, 0.2)


def test_the_period_is_the_environments(caplog: pytest.LogCaptureFixture) -> None:
    assert adapt_config(MonitorConfig(), world(control_dt_s=0.1)).control_dt_s == 0.1
    assert not caplog.records
    assert (
        adapt_config(MonitorConfig(control_dt_s=0.5), world(control_dt_s=0.1)).control_dt_s == 0.1
    )
    assert "using the latter" in caplog.text


@pytest.mark.parametrize(
    ("policy", "env", "expected"),
    [
        ((0.03, 0.04, 2.0), None, (0.03, 0.04, 1.0)),
        (None, (0.05, 0.05, 0.05), (0.05, 0.05, 0.05)),
        ((0.03, 0.06, 0.05), (0.05, 0.05, 0.01), (0.03, 0.05, 0.01)),
    ],
)
def test_the_least_of_what_is_usual_is_the_limit(
    policy: Any, env: Any, expected: tuple[float, ...]
) -> None:
    fitted = adapt_config(
        MonitorConfig(), world(translation_q99_m=env), SimpleNamespace(translation_q99_m=policy)
    )
    assert fitted.faults.unnorm_limits == expected


@pytest.mark.parametrize("largest", [1.0, 0.5])
def test_actions_of_another_scale_are_seen_where_the_policy_declares_its_own(
    largest: float,
) -> None:
    """Case 5 of the faults: never un-normalised, or by another data set, inside the space."""
    config = adapt_config(MonitorConfig(), world(), SimpleNamespace(translation_q99_m=(0.03,) * 3))
    rng = np.random.default_rng(0)

    def codes(scale: float) -> list[str]:
        monitor = Monitor(config, action_low=-ONE, action_high=ONE)
        steps = [monitor.update(Step(action=scale * rng.uniform(-1, 1, 7))) for _ in range(20)]
        return [alert.code for one in steps for alert in one.alerts if alert.kind == "fault"]

    assert codes(largest) == ["UNNORM_MISMATCH"]
    assert codes(0.03) == []


def test_the_wrapper_fits_its_own_monitor() -> None:
    class Google:
        action_space = SimpleNamespace(low=-ONE, high=ONE, shape=(7,), dtype=np.float64)
        robot = ROBOTS["google_robot"]
        control_dt_s = 1 / 3

        def reset(self, **_: Any) -> Any:
            return {}, {}

        def step(self, action: Any) -> Any:
            return {}, 0.0, False, False, {}

    config = MonitoredEnv(Google()).monitor.config
    assert (config.robot.gripper.open, config.control_dt_s) == (-1.0, 1 / 3)


@pytest.mark.parametrize("end", ["open", "close"])
@pytest.mark.parametrize("robot", ["widowx", "google_robot"])
@pytest.mark.parametrize("value", [0.9, -0.9, 1.5])
def test_one_end_of_the_users_leaves_two_ends(end: str, robot: str, value: float) -> None:
    config = MonitorConfig.model_validate({"robot": {"gripper": {end: value}}})
    fitted = adapt_config(config, world(robot=ROBOTS[robot])).robot.gripper
    assert getattr(fitted, end) == value
    assert fitted.open != fitted.close


@pytest.mark.parametrize(
    "declared", [(), 0.1, (0.1,), [0.1] * 7, [[0.1] * 3], (np.nan, 0.1, 0.1), (0.0, 0.1, 0.1), "x"]
)
def test_an_odd_translation_q99_m_is_not_used(declared: Any) -> None:
    fitted = adapt_config(MonitorConfig(), world(translation_q99_m=declared))
    assert fitted.faults.unnorm_limits is None


@pytest.mark.parametrize("period", [0.0, -1.0, np.nan, "x"])
def test_an_odd_control_period_is_not_used(period: Any) -> None:
    env = world()
    env.control_dt_s = period
    assert adapt_config(MonitorConfig(), env).control_dt_s == MonitorConfig().control_dt_s


def test_limits_that_the_user_switched_off_stay_off() -> None:
    config = MonitorConfig.model_validate({"faults": {"unnorm_limits": None}})
    fitted = adapt_config(config, world(translation_q99_m=(0.01, 0.01, 0.01)))
    assert fitted.faults.unnorm_limits is None
