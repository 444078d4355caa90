from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
Env: Any = gymnasium.Env

from monitor import env_api  # noqa: E402
from monitor.gym import MonitoredEnv  # noqa: E402
from monitor.pipeline import Monitor  # noqa: E402
from monitor.records import Mode, Step  # noqa: E402

BOX = gymnasium.spaces.Box(-1.0, 1.0, (7,), dtype=np.float32)


@pytest.fixture(autouse=True)
def _forget_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env_api, "_warned", set())


def state(elapsed: int) -> dict[str, Any]:
    return {
        "tcp_position": np.array([0.3, 0.0, 0.2]) + 0.001 * elapsed,
        "tcp_quaternion": np.array([1.0, 0.0, 0.0, 0.0]),
        "goal_distance": 0.3 - 0.01 * elapsed,
        "instruction": "wait",
        "task": "wait",
        "success": False,
    }


class New(Env):  # type: ignore[misc,unused-ignore]
    action_space = BOX
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self) -> None:
        self.received: list[Any] = []

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.options = options
        self.received.clear()
        return np.zeros(1), state(0)

    def step(self, action: Any) -> Any:
        self.received.append(action)
        return np.zeros(1), 1.0, False, len(self.received) >= 20, state(len(self.received))


class Old:
    """The gym API of before 0.26: no base class, bare reset, 4-tuple."""

    action_space = BOX

    def __init__(self) -> None:
        self.received: list[Any] = []

    def reset(self) -> Any:
        self.received.clear()
        return np.zeros(1)

    def step(self, action: Any) -> Any:
        self.received.append(action)
        return np.zeros(1), 1.0, len(self.received) >= 20, state(len(self.received))


class Batched(New):
    """One environment of a vectorised simulator: everything has a leading axis and is a tensor."""

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1, 7), dtype=np.float32)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        obs, info = super().reset(seed=seed, options=options)
        return obs, self._batched(info)

    def step(self, action: Any) -> Any:
        import torch

        obs, reward, terminated, truncated, info = super().step(action)
        flags = torch.tensor([terminated]), torch.tensor([truncated])
        return obs, torch.tensor([reward]), *flags, self._batched(info)

    @staticmethod
    def _batched(info: dict[str, Any]) -> dict[str, Any]:
        import torch

        numbers = ("tcp_position", "tcp_quaternion", "goal_distance", "success")
        return {
            k: torch.as_tensor(np.asarray(v))[None] if k in numbers else v for k, v in info.items()
        }


def actions(count: int = 20) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return [0.1 * rng.standard_normal(7) for _ in range(count)]


def by_hand() -> list[Any]:
    monitor = Monitor(action_low=BOX.low, action_high=BOX.high)
    monitor.reset(instruction="wait", task="wait")
    fields = ("tcp_position", "tcp_quaternion", "goal_distance", "success")
    return [
        monitor.update(Step(action=action, **{key: state(number)[key] for key in fields}))
        for number, action in enumerate(actions())
    ]


@pytest.mark.parametrize("kind", [New, Batched])
def test_the_wrapper_says_what_the_monitor_says(kind: Any) -> None:
    if kind is Batched:
        pytest.importorskip("torch")
    inner = kind()
    env = MonitoredEnv(inner, measure_latency=False)
    env.reset(options={"scene": 3})
    assert inner.options == {"scene": 3}
    for number, (action, expected) in enumerate(zip(actions(), by_hand(), strict=True)):
        given = action[None] if kind is Batched else action
        _, reward, terminated, truncated, info = env.step(given)
        decision = info["monitor"]
        assert decision.metrics == expected.metrics
        assert decision.score == expected.score
        assert decision.mode is expected.mode
        assert (reward, terminated, truncated) == (1.0, False, number == 19)
        sent = inner.received[-1]
        assert sent.shape == inner.action_space.shape
        np.testing.assert_array_equal(sent.reshape(-1), expected.action.astype(np.float32))


def test_the_old_api_is_read_with_one_warning_each() -> None:
    env = MonitoredEnv(Old())
    with pytest.warns(env_api.OldApiWarning, match="bare observation"):
        env.reset()
    with pytest.warns(env_api.OldApiWarning, match="4-tuple"):
        env.step(np.zeros(7))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.reset()
        *_, info = env.step(np.zeros(7))
    assert info["monitor"].mode is Mode.TASK


@pytest.mark.parametrize("bad", [np.full(7, np.nan), np.full(7, np.inf), np.zeros(3), None, "x"])
def test_after_a_halt_the_environment_rests_until_reset(bad: Any) -> None:
    inner = New()
    env = MonitoredEnv(inner)
    env.reset()
    env.step(np.zeros(7))
    for action in (bad, np.zeros(7)):
        obs, reward, terminated, truncated, info = env.step(action)
        assert (reward, terminated, truncated) == (0.0, False, True)
        assert info["monitor"].mode is Mode.HALT
        assert obs is not None
    assert len(inner.received) == 1
    env.reset()
    *_, truncated, info = env.step(np.zeros(7))
    assert not truncated
    assert info["monitor"].step == 0


def test_signals_of_the_policy_are_for_one_step() -> None:
    env = MonitoredEnv(New())
    env.reset()
    logits = 12.0 * np.eye(7, 16)
    env.attach(token_logits=logits, token_ids=logits.argmax(axis=1), latency_s=0.01)
    *_, info = env.step(np.zeros(7))
    assert info["monitor"].metrics["TB-E"] is not None
    assert info["monitor"].evidence.latency_s == 0.01
    *_, info = env.step(np.zeros(7))
    assert info["monitor"].metrics["TB-E"] is None
    assert info["monitor"].evidence.latency_s > 0.0


def test_an_unknown_signal_is_named() -> None:
    with pytest.raises(TypeError, match=r"unknown signal.*logits.*allowed: token_logits"):
        MonitoredEnv(New()).attach(logits=1)


def test_a_space_without_ends_needs_a_monitor() -> None:
    from monitor.errors import DimensionError

    class Discrete(New):
        action_space = gymnasium.spaces.Discrete(3)

    with pytest.raises(DimensionError, match="pass your own monitor"):
        MonitoredEnv(Discrete())


def test_gymnasium_accepts_it() -> None:
    env = MonitoredEnv(New())
    assert env.unwrapped is env.env
    wrapped = gymnasium.wrappers.TimeLimit(env, 3)
    wrapped.reset()
    assert [wrapped.step(np.zeros(7))[3] for _ in range(3)] == [False, False, True]
