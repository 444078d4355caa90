from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from monitor.config import parse_config
from monitor.env_api import OldApiWarning
from monitor.pipeline import Monitor
from monitor.records import Mode
from monitor.rollout import EpisodeSpec, run_episode
from policies import PolicyOutput

HORIZON = 30


def with_action(action: Any) -> Any:
    return lambda output: PolicyOutput(action=action)


def test_an_episode_runs_to_its_end_and_notifies_its_observers(
    fake_env: Any, reacher: Any, monitor: Monitor, watcher: Any
) -> None:
    env, policy = fake_env(), reacher()
    result = run_episode(env, policy, monitor, (watcher,), spec=EpisodeSpec(scene=3))
    assert (result.outcome, result.steps, result.scene) == ("success", HORIZON, 3)
    assert policy.bound is env
    assert policy.instructions == ["reach goal 3"] == [watcher.starts[0].instruction]
    assert len(env.received) == len(watcher.steps) == HORIZON
    assert watcher.ends == [result]
    assert [record.step for record in watcher.steps] == list(range(HORIZON))
    assert result.task == "reach"
    assert result.final_info["elapsed_steps"] == HORIZON
    assert "object_poses" not in result.final_info
    assert sum(result.modes.values()) == HORIZON
    for record, received in zip(watcher.steps, env.received, strict=True):
        np.testing.assert_array_equal(record.sent, received)
        assert record.policy_ms >= 0.0
        assert record.overhead_us > 0.0
        assert record.inputs.latency_s == pytest.approx(record.policy_ms / 1e3)


def test_success_is_recorded_by_moment(fake_env: Any, reacher: Any, monitor: Monitor) -> None:
    """Solved at steps 2 and 3 only, as in s = [0, 0, 1, 1, 0, 0]."""
    flags = [False, False, False, True, True, False, False]

    class Flags:
        def __init__(self) -> None:
            self.inner = fake_env(horizon_steps=6)
            self.seen = -1

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def _told(self, info: dict[str, Any]) -> dict[str, Any]:
            self.seen += 1
            return {**info, "success": flags[self.seen]}

        def reset(self, **given: Any) -> Any:
            obs, info = self.inner.reset(**given)
            return obs, self._told(info)

        def step(self, action: Any) -> Any:
            *rest, info = self.inner.step(action)
            return *rest, self._told(info)

    result = run_episode(Flags(), reacher(), monitor)
    assert result.success_once is True
    assert result.success_at_end is False
    assert result.success_at_reset is False
    assert result.first_success == 2
    assert result.outcome == "failure"


def test_success_does_not_end_the_episode(fake_env: Any, reacher: Any, monitor: Monitor) -> None:
    result = run_episode(fake_env(), reacher(), monitor)
    assert result.first_success is not None
    assert result.first_success < result.steps - 1


@pytest.mark.parametrize("step", [0, 1, 7, 8, 20, HORIZON - 1])
@pytest.mark.parametrize(
    ("action", "code"),
    [
        (np.full(7, np.nan), "NONFINITE_ACTION"),
        (np.array([0, 0, np.inf, 0, 0, 0, 1.0]), "NONFINITE_ACTION"),
        (np.zeros(6), "ACTION_SHAPE"),
        (np.zeros((2, 7)), "ACTION_SHAPE"),
        (None, None),
        ("open the gripper", None),
    ],
)
def test_a_bad_action_halts_and_never_reaches_the_environment(
    fake_env: Any, reacher: Any, monitor: Monitor, watcher: Any, step: int, action: Any, code: Any
) -> None:
    env = fake_env()
    result = run_episode(env, reacher({step: with_action(action)}), monitor, (watcher,))
    assert result.outcome == "halted"
    assert result.steps == step + 1
    assert len(env.received) == step
    assert all(np.isfinite(received).all() for received in env.received)
    assert watcher.steps[-1].sent is None
    assert watcher.steps[-1].decision.mode is Mode.HALT
    assert result.message.startswith(f"halted at step {step}: ")
    if code is not None:
        assert code in result.faults


@pytest.mark.parametrize("step", [0, 1, 8, HORIZON - 1])
def test_an_exception_of_the_policy_ends_the_episode_and_is_kept(
    fake_env: Any, reacher: Any, monitor: Monitor, step: int
) -> None:
    env = fake_env()
    result = run_episode(env, reacher({step: RuntimeError("no GPU")}), monitor)
    assert result.outcome == "error"
    assert f"policy raised at step {step}: RuntimeError: no GPU (conftest.py:" in result.message
    assert "POLICY_ERROR" in result.faults
    assert len(env.received) == step


def test_an_exception_of_the_policy_may_be_recovered_from(
    fake_env: Any, reacher: Any, watcher: Any
) -> None:
    env = fake_env()
    config = parse_config({"faults": {"respond": {"POLICY_ERROR": "recover"}}})
    low, high = env.action_space.low, env.action_space.high
    monitor = Monitor(config, action_low=low, action_high=high)
    result = run_episode(env, reacher({5: RuntimeError("once")}), monitor, (watcher,))
    assert result.steps == HORIZON
    assert result.outcome in ("success", "failure")
    assert "RuntimeError: once" in result.message
    assert watcher.steps[5].decision.mode is Mode.RECOVER
    np.testing.assert_array_equal(watcher.steps[5].sent, watcher.steps[5].decision.action)


def test_anything_but_a_policy_output_is_reported(
    fake_env: Any, reacher: Any, monitor: Monitor
) -> None:
    result = run_episode(fake_env(), reacher({2: lambda _: np.zeros(7)}), monitor)
    assert result.outcome == "error"
    assert "policy returned ndarray, expected a PolicyOutput" in result.message


@pytest.mark.parametrize("step", [0, 4, HORIZON - 1])
def test_an_exception_of_the_environment_is_an_error_not_a_failure(
    fake_env: Any, reacher: Any, monitor: Monitor, watcher: Any, step: int
) -> None:
    env = fake_env(broken={(0, step): RuntimeError("Vulkan lost")})
    result = run_episode(env, reacher(), monitor, (watcher,))
    assert result.outcome == "error"
    assert f"environment raised at step {step}: RuntimeError: Vulkan lost" in result.message
    assert "ENV_ERROR" in result.faults
    assert watcher.steps[-1].sent is None
    assert result.steps == step + 2


def test_a_reset_that_fails_is_an_error(
    fake_env: Any, reacher: Any, monitor: Monitor, watcher: Any
) -> None:
    env = fake_env(broken={(0, -1): RuntimeError("no assets")})
    result = run_episode(env, reacher(), monitor, (watcher,))
    assert result.outcome == "error"
    assert "environment raised at reset: RuntimeError: no assets" in result.message
    assert result.success_at_end is None
    assert env.received == []
    assert len(watcher.starts) == len(watcher.ends) == 1


@pytest.mark.parametrize("first", [0, 4])
def test_a_verdict_that_cannot_be_read_is_an_error(
    fake_env: Any, reacher: Any, monitor: Monitor, watcher: Any, first: int
) -> None:
    class Batched(fake_env):  # type: ignore[misc]
        def _seen(self) -> Any:
            observation, info = super()._seen()
            if self.elapsed >= first:
                info["success"] = np.array([True, False])
            return observation, info

    env = Batched()
    result = run_episode(env, reacher(), monitor, (watcher,))
    assert result.outcome == "error"
    assert "got 2 values, expected one per environment" in result.message
    assert "ENV_ERROR" in result.faults
    assert len(env.received) == first
    assert watcher.ends == [result]


def test_a_monitor_that_fails_stops_the_robot(
    fake_env: Any, reacher: Any, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(step: Any) -> Any:
        msg = "bug"
        raise RuntimeError(msg)

    monkeypatch.setattr(monitor, "update", fail)
    env = fake_env()
    result = run_episode(env, reacher(), monitor)
    assert result.outcome == "error"
    assert "monitor raised at step 0: RuntimeError: bug" in result.message
    assert env.received == []


def test_ctrl_c_passes_through(fake_env: Any, reacher: Any, monitor: Monitor) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_episode(fake_env(), reacher({3: KeyboardInterrupt()}), monitor)


def test_an_unknown_success_gives_no_verdict(
    fake_env: Any, reacher: Any, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = fake_env()
    seen = env._seen

    def mute() -> Any:
        obs, info = seen()
        del info["success"]
        return obs, info

    monkeypatch.setattr(env, "_seen", mute)
    result = run_episode(env, reacher(), monitor)
    assert result.outcome == "error"
    assert result.success_once is None
    assert "info['success'] is missing" in result.message


def test_a_monitor_that_only_watches_lets_the_episode_run(fake_env: Any, reacher: Any) -> None:
    env = fake_env()
    config = parse_config(
        {"controller": {"enforce": False, "tau_recover": 0.0, "tau_halt": 0.0, "budget": 0}}
    )
    low, high = env.action_space.low, env.action_space.high
    result = run_episode(env, reacher(), Monitor(config, action_low=low, action_high=high))
    assert result.steps == HORIZON
    assert "HALT" in result.modes
    assert result.outcome == "success"


def test_the_limit_of_steps_holds(fake_env: Any, reacher: Any, monitor: Monitor) -> None:
    assert run_episode(fake_env(), reacher(), monitor, max_steps=4).steps == 4


def test_two_runs_are_alike(fake_env: Any, reacher: Any, monitor: Monitor, watcher: Any) -> None:
    for _ in range(2):
        run_episode(fake_env(), reacher(), monitor, (watcher,))
    first, second = watcher.steps[:HORIZON], watcher.steps[HORIZON:]
    for one, other in zip(first, second, strict=True):
        assert one.decision.score == other.decision.score
        assert one.decision.metrics == other.decision.metrics
        assert one.decision.mode is other.decision.mode


def test_an_environment_with_the_old_api_runs_its_episode(
    fake_env: Any, reacher: Any, monitor: Monitor
) -> None:
    inner = fake_env(horizon_steps=4)

    class Old:
        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        def reset(self) -> Any:
            return inner.reset()[0]

        def step(self, action: Any) -> Any:
            observation, reward, terminated, truncated, info = inner.step(action)
            return observation, reward, terminated or truncated, info

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OldApiWarning)
        result = run_episode(Old(), reacher(), monitor, spec=EpisodeSpec(scene=0, seed=0))
    assert (result.outcome, result.steps, result.message) == ("failure", 4, "")
