"""Disturbances change what they say, and nothing of them stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from envs.simpler.distractor import COUNT, MODELS, free_positions
from envs.simpler.perturb import offered
from envs.simpler.tasks import simpler_task

STACK = "widowx_stack_cube"


@pytest.fixture(scope="module")
def env(simpler: Callable[..., Any]) -> Any:
    return simpler(STACK)


def episode(env: Any, steps: int = 14, **options: Any) -> list[Any]:
    obs, info = env.reset(options={"scene": 3, **options})
    rows = [{**obs, **info}]
    for _ in range(steps):
        obs, *_, info = env.step(np.array([0.01, 0.0, 0.01, 0.0, 0.0, 0.0, 1.0]))
        rows.append({**obs, **info})
    return rows


@pytest.mark.parametrize("name", offered(simpler_task(STACK)))
def test_each_changes_what_it_says(env: Any, name: str) -> None:
    clean, rows = episode(env), episode(env, disturbance=name)
    assert rows[0]["disturbance"] == name
    seen = bool(np.any(rows[0]["image"] != clean[0]["image"]))
    assert seen == (name in ("camera_shifted", "lights_changed", "distractors"))
    positions = [row["object_poses"]["baked_green_cube_3cm"][:2] for row in (rows[0], rows[-1])]
    moved = float(np.linalg.norm(positions[1] - positions[0]))
    assert (moved > 0.02) == (name in ("object_pushed", "object_removed"))
    arm = bool(np.any(rows[4]["tcp_position"] != clean[4]["tcp_position"]))
    assert arm == (name in ("action_noise", "action_delay"))
    again = episode(env, disturbance=name)
    np.testing.assert_array_equal(again[-1]["image"], rows[-1]["image"])
    np.testing.assert_array_equal(again[-1]["tcp_position"], rows[-1]["tcp_position"])
    np.testing.assert_array_equal(episode(env)[-1]["image"], clean[-1]["image"])


def test_distractors_are_named_and_apart(env: Any) -> None:
    info = env.reset(options={"scene": 2, "disturbance": "distractors"})[1]
    extra = set(info["object_poses"]) - {info["object"], info["target"]}
    assert len(extra) == COUNT
    assert extra <= set(MODELS)
    assert info["wrong_object"] is False
    assert env.reset(options={"scene": 2})[1]["wrong_object"] is None


def test_places_keep_their_distance() -> None:
    taken = [np.array([-0.2, 0.05]), np.array([-0.1, -0.05])]
    for scene in range(50):
        found = free_positions("widowx", taken, scene)
        every = [*taken, *found]
        gaps = [np.linalg.norm(a - b) for k, a in enumerate(every) for b in every[:k]]
        assert min(gaps[1:]) >= 0.085
        np.testing.assert_array_equal(found, free_positions("widowx", taken, scene))
    assert (
        free_positions(
            "google_robot",
            [np.array([x, 0.1 * y]) for x in (-0.3, -0.2, -0.1) for y in range(6)],
            0,
        )
        == []
    )


def test_drawers_have_no_objects_to_push() -> None:
    assert "object_pushed" not in offered(simpler_task("google_robot_open_drawer"))
    assert "distractors" not in offered(simpler_task("widowx_put_eggplant_in_basket"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"missing": "ignore"}, "refuse, list"),
        ({"render_mode": "human"}, "rgb_array"),
        ({"image_size": (8, 8)}, "at least 16"),
    ],
)
def test_arguments_are_checked(
    simpler: Callable[..., Any], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        simpler(STACK, **given)
