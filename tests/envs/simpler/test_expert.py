"""The scripted expert solves WidowX's tasks over the double and goes on from any state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from envs.expert import NoExpertError, ask_expert
from envs.pose import rotation_matrix, rotation_vector, turned
from envs.simpler.expert import widowx_action
from envs.simpler.pick_expert import PickState, pick_action
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


@pytest.mark.parametrize("scene", range(3))
def test_it_picks_the_can_and_holds_it(simpler: Callable[..., Any], scene: int) -> None:
    info = run(simpler("google_robot_pick_coke_can"), 60, scene=scene)
    assert info["success"]
    assert info["grasped"]


def pick(*, grasped: bool = False, square: bool = True, **at: Any) -> PickState:
    centre = np.array(at.get("centre", (0.6, 0.0, 0.85)))
    obj = Block(centre=centre, half_height=0.06, axis_rad=at.get("axis_rad", 0.0), square=square)
    tcp = np.array([*at.get("tool", (0.45, -0.2, 1.0)), 0.0, 1.0, 0.0, 0.0])
    return PickState(tcp=tcp, obj=obj, rise_m=at.get("rise_m", 0.0), grasped=grasped)


def test_a_held_object_is_lifted_so_far_and_no_further() -> None:
    up = pick_action(pick(grasped=True))
    assert up[6] == 1.0
    assert up[2] == pytest.approx(0.12)  # as much as a step may move
    np.testing.assert_allclose(pick_action(pick(grasped=True, rise_m=0.1))[:6], 0.0, atol=1e-9)


@pytest.mark.parametrize("axis_rad", [0.0, 0.4, np.pi / 2, -1.2])
def test_the_hand_leans_outwards_across_the_object(axis_rad: float) -> None:
    given = pick(square=False, axis_rad=axis_rad)
    tool = given.tcp
    for _ in range(60):  # an arm that makes a third of each turn
        rotvec = pick_action(replace(given, tcp=tool))[3:6]
        tool = np.concatenate([tool[:3], turned(tool[3:], 0.33 * rotvec)])
    axes = rotation_matrix(tool[3:])
    assert axes[2, 2] == pytest.approx(-np.cos(np.radians(30)), abs=0.01)
    assert axes[0, 2] == pytest.approx(np.sin(np.radians(30)), abs=0.01)  # away from the base
    closing = axes[:2, 1] / np.linalg.norm(axes[:2, 1])
    assert abs(closing @ [np.cos(axis_rad), np.sin(axis_rad)]) < 0.15


def test_it_does_not_close_before_it_is_there() -> None:
    assert pick_action(pick(tool=(0.6, 0.0, 1.0)))[6] == -1.0


def test_other_tasks_of_google_robot_have_no_expert(simpler: Callable[..., Any]) -> None:
    env = simpler("google_robot_move_near")
    env.reset()
    with pytest.raises(NoExpertError, match="no scripted expert"):
        ask_expert(env)


def state(axis_rad: float = 0.0, *, square: bool = False, **given: Any) -> State:
    obj = Block(
        centre=np.array([0.3, 0.0, 0.015]), half_height=0.015, axis_rad=axis_rad, square=square
    )
    target = Block(centre=np.array([0.25, 0.1, 0.0]), half_height=0.0, axis_rad=0.0, square=True)
    aim = np.array([0.3, 0.0, 0.1, 0.5**0.5, 0.0, 0.5**0.5, 0.0])
    kept = {"tcp_position": aim[:3], "grasped": False, "success": False, **given}
    return State(aim=aim, obj=obj, target=target, **kept)


@pytest.mark.parametrize(
    ("axis_rad", "square", "yaw_rad"),
    [(0.0, False, 0.0), (np.pi, False, 0.0), (0.2, False, 0.2), (np.pi / 2 + 0.1, True, 0.1)],
)
def test_fingers_close_across_the_longer_side(
    axis_rad: float, square: bool, yaw_rad: float
) -> None:
    rotvec = widowx_action(state(axis_rad, square=square))[3:6]
    np.testing.assert_allclose(rotvec, [0.0, 0.0, yaw_rad], atol=1e-6)


def test_a_long_object_may_need_a_quarter_turn() -> None:
    rotvec = widowx_action(state(np.pi / 2))[3:6]
    assert abs(rotvec[2]) == pytest.approx(0.25)  # as much as a step may turn
    wanted = rotation_vector([1.0, 0.0, 0.0, 0.0], [np.cos(0.125), 0.0, 0.0, np.sin(0.125)])
    np.testing.assert_allclose(np.abs(rotvec), wanted, atol=1e-9)


def test_steps_are_bounded_and_a_solved_task_is_left_alone() -> None:
    far = widowx_action(state(tcp_position=np.array([0.1, -0.3, 0.4])))
    assert np.linalg.norm(far[:3]) <= 0.03 + 1e-9
    done = widowx_action(state(success=True))
    assert done[6] == 1.0
    assert done[2] > 0.02
    np.testing.assert_allclose(done[:2], 0.0, atol=1e-9)
