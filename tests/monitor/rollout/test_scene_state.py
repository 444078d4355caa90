from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from monitor.rollout.scene_state import read_scene_state

FULL: dict[str, Any] = {
    "object": "can",
    "target": "plate",
    "grasped": np.array([True]),
    "object_poses": {"can": [1, 2, 3, 0, 0, 0, 1], "plate": [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]},
    "contacts": (("can", "table", np.float32(0.5)),),
    "success": False,
    "picture": np.zeros((4, 4)),
}


def test_names_poses_grasp_and_contacts_are_kept_as_plain_numbers() -> None:
    assert read_scene_state(FULL) == {
        "object": "can",
        "target": "plate",
        "grasped": True,
        "object_poses": {"can": [1, 2, 3, 0, 0, 0, 1], "plate": [0, 0, 0, 1, 0, 0, 0]},
        "contacts": [["can", "table", 0.5]],
    }


@pytest.mark.parametrize(
    ("name", "odd", "left"),
    [
        ("object", 3, None),
        ("target", None, None),
        ("grasped", None, None),
        ("grasped", np.array([True, False]), None),
        ("object_poses", "nowhere", None),
        (
            "object_poses",
            {"can": [1.0], "cup": np.full(7, np.nan), "jar": object(), "urn": np.zeros(7)},
            {},
        ),
        ("contacts", None, None),
        ("contacts", "touching", None),
        ("contacts", [("can", "table")], None),
    ],
)
def test_malformed_values_are_left_out(name: str, odd: Any, left: Any) -> None:
    found = read_scene_state({**FULL, name: odd})
    assert found.pop(name, None) == left
    assert found == {key: value for key, value in read_scene_state(FULL).items() if key != name}


def test_an_environment_without_objects_has_no_scene_state() -> None:
    assert read_scene_state({"success": True}) == {}


def test_forces_are_numbers_and_the_hardest_are_kept() -> None:
    odd = [("a", "b", np.nan), ("a", "c", np.inf), ("a", "d", 1.0)]
    assert read_scene_state({"contacts": odd})["contacts"] == [["a", "c", 1e9], ["a", "d", 1.0]]
    many = [("a", str(i), float(i)) for i in range(5000)]
    kept = read_scene_state({"contacts": many})["contacts"]
    assert len(kept) == 256
    assert min(row[2] for row in kept) == 5000 - 256
