from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from monitor import env_api
from monitor.env_api import (
    OldApiWarning,
    TransitionError,
    action_bounds,
    read_flag,
    read_number,
    read_reset,
    read_step,
    reset_env,
)


@pytest.fixture(autouse=True)
def _forget_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env_api, "_warned", set())


def test_new_api() -> None:
    now = read_step(("obs", 1, False, np.bool_(True), {"success": True}))
    assert (now.reward, now.terminated, now.truncated, now.success) == (1.0, False, True, True)
    assert read_reset(("obs", {"a": 1})).info == {"a": 1}


def test_old_api_is_read_with_one_warning_each() -> None:
    with pytest.warns(OldApiWarning, match="4-tuple"):
        now = read_step(("obs", 0.5, True, {"TimeLimit.truncated": True}))
    assert (now.terminated, now.truncated) == (False, True)
    with pytest.warns(OldApiWarning, match="bare observation"):
        assert read_reset({"image": 1}).observation == {"image": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_step(("obs", 0.5, True, {})).terminated
        assert read_reset("obs").info == {}


class Resets:
    """Keeps what its reset was given."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    def seed(self, seed: int) -> None:
        self.got.append(("seed", seed))


def test_a_reset_of_the_old_api_gets_what_it_takes() -> None:
    class Old(Resets):
        def reset(self) -> str:
            self.got.append("reset")
            return "obs"

    env = Old()
    with pytest.warns(OldApiWarning, match="does not take seed or options: the scenes"):
        assert reset_env(env, seed=3, options={"scene": 1}) == "obs"
    assert env.got == [("seed", 3), "reset"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reset_env(env, seed=None, options=None)
    assert env.got[2:] == ["reset"]


def test_a_reset_of_the_new_api_gets_all_but_none() -> None:
    class New(Resets):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            self.got.append((seed, options))

    class Loose(Resets):
        def reset(self, **given: Any) -> Any:
            self.got.append(given)

    new, loose = New(), Loose()
    for env in (new, loose):
        reset_env(env, seed=0, options={"scene": 1})
        reset_env(env, seed=None, options=None)
    assert new.got == [(0, {"scene": 1}), (None, None)]
    assert loose.got == [{"seed": 0, "options": {"scene": 1}}, {}]


def test_batched_tensors_of_one_env() -> None:
    torch = pytest.importorskip("torch")
    info = {
        "success": torch.tensor([True]),
        "goal_distance": torch.tensor([0.25]),
        "tcp_position": torch.zeros(1, 3),
    }
    obs = {"image": torch.zeros(1, 4, 4, 3, dtype=torch.uint8), "gripper": np.array([[0.5]])}
    now = read_step((obs, torch.tensor([2.0]), torch.tensor([False]), torch.tensor([True]), info))
    assert (now.reward, now.truncated, now.success) == (2.0, True, True)
    sensed = now.sensed()
    assert sensed["image"].shape == (4, 4, 3)
    assert sensed["tcp_position"].shape == (3,)
    assert float(sensed["goal_distance"]) == 0.25
    assert float(sensed["gripper"]) == 0.5


def test_a_batch_of_several_is_refused_in_words() -> None:
    with pytest.raises(TransitionError, match="VectorMonitor"):
        read_step(("obs", 0.0, np.array([False, True]), np.array([False, False]), {}))


@pytest.mark.parametrize("returned", [None, ("obs", 1.0), {"obs": 1}])
def test_what_is_neither_api_is_refused_in_words(returned: Any) -> None:
    with pytest.raises(TransitionError, match="expected"):
        read_step(returned)


def test_an_env_that_resets_itself_hands_over_its_last_moment() -> None:
    info = {"success": False, "final_info": {"success": True}, "final_observation": "last"}
    now = read_step(("first of next", 0.0, True, False, info))
    assert now.success is True
    assert now.observation == "last"


def test_what_the_environment_does_not_say_is_unknown() -> None:
    now = read_step(("obs", np.nan, False, False, {}))
    assert now.success is None
    assert now.reward is None
    assert now.sensed() == {}
    assert read_number("x") is None
    assert read_flag([0]) is False


@pytest.mark.parametrize("value", [None, float("nan"), np.array([np.nan]), np.array(None)])
def test_no_verdict_is_neither_success_nor_failure(value: Any) -> None:
    assert read_reset(({}, {"success": value})).success is None


@pytest.mark.parametrize("shape", [(7,), (1, 7)])
def test_bounds_of_one_environment(shape: tuple[int, ...]) -> None:
    space = SimpleNamespace(low=-np.ones(shape, np.float32), high=np.ones(shape, np.float32))
    low, high = action_bounds(SimpleNamespace(action_space=space))
    assert low.tolist() == [-1.0] * 7
    assert high.tolist() == [1.0] * 7


def test_a_space_without_ends_is_said() -> None:
    with pytest.raises(TransitionError, match="expected a Box"):
        action_bounds(SimpleNamespace(action_space="Discrete(3)"))
