"""The embedded tasks beside ``widowx-put-on`` keep the contract and are solved by their expert."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import pytest

from envs.conformance import Outcome, Trial, run_check

pytestmark = [
    pytest.mark.slow,
    # SAPIEN and gymnasium warn about themselves while they are imported.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

NAMES = ("widowx-put-in", "google-pick", "google-move-near")
KINDS = {"widowx-put-in": "put-in", "google-pick": "pick", "google-move-near": "move-near"}
# What a goal of its own can break …
OF_A_GOAL = (
    "info",
    "object_poses",
    "starts_unsolved",
    "goal_distance",
    "grasp_now",
    "held_at_tool",
    "contact_of_grasp",
    "success_now",
)
# … and what a robot of its own can; that of WidowX is tested with widowx-put-on.
OF_A_ROBOT = (
    "attributes",
    "spaces",
    "observation",
    "contacts",
    "translation",
    "rotation",
    "gripper",
    "base_frame",
    "repeatable",
)
CASES = [(name, check) for name in NAMES for check in OF_A_GOAL]
CASES += [("google-pick", check) for check in OF_A_ROBOT]


@pytest.fixture(scope="module")
def trials() -> Iterator[dict[str, Trial]]:
    from envs import make_env

    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                Trial(partial(make_env, name, image_size=(48, 60)), scenes=(0, 1))
            )
            for name in NAMES
        }


@pytest.mark.parametrize(("name", "check"), CASES)
def test_the_contract(trials: dict[str, Trial], name: str, check: str) -> None:
    finding = run_check(check, trials[name])
    assert finding.outcome is Outcome.PASSED, finding.detail


@pytest.mark.parametrize("name", NAMES)
def test_the_task_is_told_as_it_is(trials: dict[str, Trial], name: str) -> None:
    info: Any = trials[name].start()[0].info
    assert info["task"] == KINDS[name]
    assert info["object"] in info["instruction"]
    if name == "google-move-near":
        assert info["target"] in info["instruction"]
        assert len(info["object_poses"]) == 3
    else:
        assert info["target"] == {"widowx-put-in": "basket", "google-pick": None}[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_expert_ends_where_the_goal_is(trials: dict[str, Trial], name: str) -> None:
    infos: list[Any] = [frame.info for frame in trials[name].solved()]
    solved = next(info for info in infos if info["success"])
    assert solved["grasped"] == (name == "google-pick")
    obj, start = (info["object_poses"][info["object"]][:3] for info in (solved, infos[0]))
    if name == "google-pick":
        assert obj[2] - start[2] > 0.03
        return
    goal = solved["object_poses"][solved["target"]][:3]
    reach = {"widowx-put-in": 0.055, "google-move-near": 0.052 + 0.05}[name]
    assert np.abs(obj[:2] - goal[:2]).max() < reach < np.linalg.norm(start[:2] - goal[:2])
    assert solved["goal_distance"] < infos[0]["goal_distance"] / 2


def test_a_relative_gripper_keeps_what_it_was_told(trials: dict[str, Trial]) -> None:
    made = trials["google-pick"]
    made.reset()
    half = [made.step(np.array([0.0] * 6 + [change])) for change in (0.5, 0.0, 0.0)]
    assert half[-1].obs["gripper"][0] == pytest.approx(0.5, abs=0.05)
    opened = [made.step(np.array([0.0] * 6 + [change])) for change in (-1.0, 0.0)]
    assert opened[-1].obs["gripper"][0] == pytest.approx(1.0, abs=0.05)


def test_the_google_robot_starts_where_simplerenvs_does(trials: dict[str, Trial]) -> None:
    start = trials["google-pick"].start()[0].obs["tcp_position"]
    np.testing.assert_allclose(start, [0.4394, -0.2184, 0.9619], atol=1e-3)
