"""Scenes of the uncertainty study are laid in SimplerEnv's own tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from envs.layout import Layout
from envs.simpler.layout_reset import layout_start, read_layout, takes_layouts
from envs.simpler.tasks import TASKS, simpler_task

UP = [1.0, 0.0, 0.0, 0.0]
PICK = {
    "kind": "pick",
    "source": "sponge",
    "target": None,
    "objects": {
        "sponge": {"xy": [-0.2, 0.1], "quaternion": UP},
        "opened_coke_can": {"xy": [-0.3, 0.3], "quaternion": UP},
    },
}
MOVE = {
    "kind": "move-near",
    "source": "apple",
    "target": "orange",
    "objects": {
        "orange": {"xy": [-0.2, 0.1], "quaternion": UP},
        "sponge": {"xy": [-0.3, 0.3], "quaternion": UP},
        "apple": {"xy": [-0.13, 0.3], "quaternion": [0.0, 0.0, 0.0, 1.0]},
    },
}


def positions(env: Any, info: Any) -> dict[str, Any]:
    """Where the objects stand in the world, by name."""
    base = env.sim.agent.robot.pose
    return {
        name: (base * type(base)(pose[:3], pose[3:])).p[:2]
        for name, pose in info["object_poses"].items()
    }


@pytest.mark.parametrize(
    ("task", "layout", "said"),
    [
        ("google_robot_pick_object", PICK, "pick sponge"),
        ("google_robot_move_near", MOVE, "move apple near orange"),
        ("widowx_carrot_on_plate", {**MOVE, "kind": "put-on"}, "put apple on orange"),
    ],
)
def test_objects_stand_where_the_layout_says(
    simpler: Callable[..., Any], task: str, layout: dict[str, Any], said: str
) -> None:
    env = simpler(task)
    before = env.reset(options={"scene": 1})[1]
    info = env.reset(options={"scene": 412, "layout": layout})[1]
    assert info["instruction"] == said
    assert info["scene"] == 412
    assert (info["object"], info["target"]) == (layout["source"], layout["target"])
    found = positions(env, info)
    assert set(found) == set(layout["objects"])
    for name, placement in layout["objects"].items():
        np.testing.assert_allclose(found[name], placement["xy"], atol=1e-3)
    after = env.reset(options={"scene": 1})[1]
    assert after["instruction"] == before["instruction"]
    assert set(after["object_poses"]) == set(before["object_poses"])


def test_another_kind_of_layout_is_refused_with_where_it_fits(simpler: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="taken by: google_robot_move_near_v0"):
        simpler("widowx_stack_cube").reset(options={"layout": MOVE})
    with pytest.raises(ValueError, match="must be a mapping"):
        simpler("google_robot_move_near").reset(options={"layout": "file.json"})
    with pytest.raises(ValueError, match="numbered from 0"):
        layout_start(Layout.from_json(MOVE), -1)


def test_every_kind_of_layout_has_a_task() -> None:
    kinds = {task.kind.value for task in TASKS.values() if takes_layouts(task)}
    assert kinds == {"pick", "move-near", "put-on", "put-in"}
    assert not takes_layouts(simpler_task("google_robot_pick_coke_can"))
    assert read_layout(simpler_task("google_robot_pick_object"), PICK).source == "sponge"
