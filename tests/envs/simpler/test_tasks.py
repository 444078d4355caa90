"""The tasks that we know are those that SimplerEnv ships."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from envs import list_envs
from envs.robot import robot_spec
from envs.simpler.scene import scene_start
from envs.simpler.tasks import TASKS, Kind, simpler_task


def test_names_and_lengths_are_simplerenvs(facts: Any) -> None:
    assert {name: task.horizon_steps for name, task in TASKS.items()} == {
        name: row["max_episode_steps"] for name, row in facts["table"].items()
    }


def test_robots_and_cameras_are_the_recorded_ones(facts: Any) -> None:
    for name, recorded in facts["tasks"].items():
        task = TASKS[name]
        robot = robot_spec(task.robot)
        assert recorded["robot_uid"].startswith(task.robot)
        assert robot.control_freq_hz == recorded["control_freq"]
        assert robot.joint_count == len(recorded["qpos"])
        assert task.camera in recorded["observation"]["image"]
        closed = recorded["motion"][f"closedness after {-robot.open_sign:+d}"]
        assert recorded["motion"][f"closedness after {robot.open_sign:+d}"] < 0.1 < 0.7 < closed


def test_every_task_has_a_name_of_ours() -> None:
    assert {f"simpler/{name}" for name in TASKS} <= set(list_envs())
    with pytest.raises(ValueError, match="did you mean 'widowx_stack_cube'"):
        simpler_task("widowx_stack_cubes")


def test_a_can_lies_on_the_published_grid() -> None:
    task = simpler_task("google_robot_pick_coke_can")
    assert task.scene_count == 75
    starts = [scene_start(task, scene).options["obj_init_options"] for scene in range(75)]
    assert len({(start["orientation"], *start["init_xy"]) for start in starts}) == 75
    xy = np.array([start["init_xy"] for start in starts])
    np.testing.assert_allclose(xy.min(axis=0), [-0.35, -0.02])
    np.testing.assert_allclose(xy.max(axis=0), [-0.12, 0.42])


def test_episodes_that_simplerenv_counts_are_asked_for_by_number() -> None:
    for task in TASKS.values():
        start = scene_start(task, 3)
        counted = task.kind in (Kind.MOVE_NEAR, Kind.PUT_ON, Kind.PUT_IN)
        assert start.options["obj_init_options"].get("episode_id") == (3 if counted else None)
        assert start.seed == 3
        assert start.options["reconfigure"]


def test_options_are_made_anew_for_each_reset() -> None:
    task = simpler_task("google_robot_close_drawer")
    first = scene_start(task, 1)
    first.options["obj_init_options"]["cabinet_init_qpos"] = 0.2
    assert scene_start(task, 1).options["obj_init_options"] == {}


@pytest.mark.parametrize(("name", "scene"), [("widowx_stack_cube", 24), ("widowx_stack_cube", -1)])
def test_a_scene_that_does_not_exist_is_refused(name: str, scene: int) -> None:
    with pytest.raises(ValueError, match=f"scene {scene} .* allowed: 0 to 23 .24 scenes."):
        scene_start(simpler_task(name), scene)
