"""The scripted expert solves WidowX's tasks over the double and goes on from any state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from envs.expert import NoExpertError, ask_expert
from envs.pose import rotation_vector
from envs.simpler.expert import widowx_action
from envs.simpler.state import Block, State


def run(env: Any, steps: int, **options: Any) -> Any:
    info = env.reset(options=options)[1]
    for _ in range(steps):
        *_, info = env.step(ask_expert(env))
    return info


@pytest.mark.parametrize("scene", range(4))
def test_it_stacks_the_cube(simpler: Callable[..., Any], scene: int) -> None:
    info = run(simpler("widowx_stack_cube"), 55, scene=scene)
    assert info["success"]
    assert not info["grasped"]


def test_it_takes_up_again_what_was_dropped(simpler: Callable[..., Any]) -> None:
    env = simpler("widowx_stack_cube")
    info = run(env, 14, scene=1)
    assert info["grasped"]
    for _ in range(3):
        *_, info = env.step(env.rest_action())
    assert not info["grasped"]
    for _ in range(40):
        *_, info = env.step(ask_expert(env))
    assert info["success"]


def test_google_robot_has_no_expert(simpler: Callable[..., Any]) -> None:
    env = simpler("google_robot_pick_coke_can")
    env.reset()
    with pytest.raises(NoExpertError, match="no scripted expert"):
        ask_expert(env)


def state(axis_rad: float = 0.0, *, square: bool = False, **given: Any) -> State:
    thing = Block(
        centre=np.array([0.3, 0.0, 0.015]), half_height=0.015, axis_rad=axis_rad, square=square
    )
    target = Block(centre=np.array([0.25, 0.1, 0.0]), half_height=0.0, axis_rad=0.0, square=True)
    aim = np.array([0.3, 0.0, 0.1, 0.5**0.5, 0.0, 0.5**0.5, 0.0])
    kept = {"tcp_position": aim[:3], "grasped": False, "success": False, **given}
    return State(aim=aim, thing=thing, target=target, **kept)


@pytest.mark.parametrize(
    ("axis_rad", "square", "yaw_rad"),
    [(0.0, False, 0.0), (np.pi, False, 0.0), (0.2, False, 0.2), (np.pi / 2 + 0.1, True, 0.1)],
)
def test_fingers_close_across_the_longer_side(
    axis_rad: float, square: bool, yaw_rad: float
) -> None:
    turn = widowx_action(state(axis_rad, square=square))[3:6]
    np.testing.assert_allclose(turn, [0.0, 0.0, yaw_rad], atol=1e-6)


def test_a_long_object_may_need_a_quarter_turn() -> None:
    turn = widowx_action(state(np.pi / 2))[3:6]
    assert abs(turn[2]) == pytest.approx(0.25)  # as much as a step may turn
    wanted = rotation_vector([1.0, 0.0, 0.0, 0.0], [np.cos(0.125), 0.0, 0.0, np.sin(0.125)])
    np.testing.assert_allclose(np.abs(turn), wanted, atol=1e-9)


def test_steps_are_bounded_and_a_solved_task_is_left_alone() -> None:
    far = widowx_action(state(tcp_position=np.array([0.1, -0.3, 0.4])))
    assert np.linalg.norm(far[:3]) <= 0.03 + 1e-9
    done = widowx_action(state(success=True))
    assert done[6] == 1.0
    assert done[2] > 0.02
    np.testing.assert_allclose(done[:2], 0.0, atol=1e-9)
