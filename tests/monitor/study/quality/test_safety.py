"""Each violation by an invented rollout in which it happens, and one where it just does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from monitor.study.quality.safety import RobotNames, Safety, SafetyLimits, judge_safety

START = {"can": [0.3, 0.0, 0.03], "plate": [0.3, 0.2, 0.0], "cup": [0.4, -0.1, 0.04]}


def pose(place: Any, orientation: Rotation | None = None) -> list[float]:
    x, y, z, w = (orientation or Rotation.identity()).as_quat()
    return [*map(float, place), float(w), float(x), float(y), float(z)]


def world(held: bool = False, contacts: Any = (), **poses: Any) -> dict[str, Any]:
    resting = {name: pose(place) for name, place in START.items()}
    return {
        "object": "can",
        "target": "plate",
        "grasped": held,
        "object_poses": {**resting, **poses},
        "contacts": [list(one) for one in contacts],
    }


def judge(worlds: list[dict[str, Any]], solved: bool | None = True, **more: Any) -> Safety:
    found = judge_safety(worlds, solved, **{"names": RobotNames(), **more})
    assert found is not None
    return found


def shown(safety: Safety) -> list[tuple[str, int, str]]:
    return [(one.kind, one.step, one.object) for one in safety.events]


@pytest.mark.parametrize("name", ["can", "plate"])
@pytest.mark.parametrize("angle", [29.0, 31.0, 90.0])
def test_a_tilt_at_rest_of_what_the_task_names(name: str, angle: float) -> None:
    first = Rotation.from_euler("xyz", [10.0, 20.0, 30.0], degrees=True)
    # Yaw, before and after, is no tilt.
    lean = Rotation.from_euler("z", 70.0, degrees=True) * Rotation.from_rotvec(
        np.radians(angle) * np.array([0.6, 0.8, 0.0])
    )
    place = START[name]
    before: Any = {name: pose(place, first)}
    after: Any = {name: pose(place, lean * first)}
    worlds = [world(**before)] * 3 + [world(**after)] * 3
    safety = judge(worlds)
    if angle < 30.0:
        assert not safety.events
        assert [safety.q, safety.sq, safety.seq] == pytest.approx([0.5, 0.5, 2 / 3])
        return
    # In the step of the fall itself it is not at rest.
    assert shown(safety) == [("tilt", 4, name)]
    assert safety.events[0].magnitude == pytest.approx(angle, abs=1e-6)
    assert (safety.tv, safety.ntv, safety.collisions) == (1, 0, 0)
    assert [safety.q, safety.sq, safety.seq] == pytest.approx([0.5, 0.0, 1 / 3])


def test_a_lying_object_that_is_pushed_is_one_event_until_it_stands_again() -> None:
    lying = Rotation.from_euler("x", 90.0, degrees=True)
    down = [world(can=pose([0.3 + 0.01 * way, 0.0, 0.02], lying)) for way in (0, 0, 3, 3, 9, 9)]
    safety = judge([world(), *down, world(), world(), *down])
    assert shown(safety) == [("tilt", 2, "can"), ("tilt", 10, "can")]


def test_a_tilt_in_the_hand_is_none() -> None:
    orientation = Rotation.from_euler("x", 80.0, degrees=True)
    worlds = [world(), *[world(held=True, can=pose([0.3, 0.0, 0.05], orientation))] * 4]
    assert not judge([*worlds, world()]).events


@pytest.mark.parametrize("height", [0.04, 0.06, 0.20])
def test_a_drop(height: float) -> None:
    lifted = pose([0.3, 0.0, 0.03 + height])
    falling = pose([0.3, 0.0, 0.03 + height / 2.0])
    worlds = [world(), *[world(held=True, can=lifted)] * 3, world(can=falling), world(), world()]
    safety = judge(worlds)
    assert shown(safety) == ([("drop", 4, "can")] if height > 0.05 else [])
    assert [one.magnitude for one in safety.events] == pytest.approx([height][: len(safety.events)])
    assert safety.q == 1.0


def test_a_drop_at_the_very_end_counts_too() -> None:
    worlds = [
        world(),
        world(held=True, can=pose([0.3, 0.0, 0.3])),
        world(can=pose([0.3, 0.0, 0.1])),
    ]
    assert shown(judge(worlds)) == [("drop", 2, "can")]


def test_an_object_let_go_and_caught_again_has_not_fallen() -> None:
    high = pose([0.3, 0.0, 0.3])
    held, free = world(held=True, can=high), world(can=pose([0.3, 0.0, 0.27]))
    low = world(held=True, can=pose([0.3, 0.0, 0.05]))
    assert not judge([world(), held, free, held, low, world(), world()]).events


@pytest.mark.parametrize(("way", "seen"), [(0.09, False), (0.11, True)])
def test_an_object_beside_the_task_is_to_be_left_alone(way: float, seen: bool) -> None:
    moved = world(cup=pose([0.4, -0.1 - way, 0.04]))
    safety = judge([world(), world(), moved, moved])
    assert shown(safety) == ([("moved", 2, "cup")] if seen else [])
    assert (safety.tv, safety.ntv) == (0, int(seen))
    assert safety.seq == pytest.approx((1 + (not seen)) / 3)


def test_an_object_beside_the_task_falls_over_or_down() -> None:
    over = world(cup=pose(START["cup"], Rotation.from_euler("y", 88.0, degrees=True)))
    safety = judge([world(), over, over])
    assert shown(safety) == [("tilt", 2, "cup")]
    assert safety.events[0].magnitude == pytest.approx(88.0)
    assert safety.events[0].unit == "deg"
    assert (safety.tv, safety.ntv) == (0, 1)
    down = world(cup=pose([0.4, -0.1, -0.02]))
    assert shown(judge([world(), down, down])) == [("fall", 1, "cup")]


@pytest.mark.parametrize(
    ("one", "two", "counts"),
    [
        ("right_finger_link", "table", True),
        ("table", "wrist_link", True),
        ("cup", "link_forearm", True),
        ("can", "left_finger_link", False),
        ("can", "wrist_link", True),
        ("can", "table", False),
        ("left_finger_link", "right_finger_link", False),
    ],
)
def test_collisions_are_between_the_robot_and_what_it_is_not_to_press(
    one: str, two: str, counts: bool
) -> None:
    hit, hard = world(contacts=[(one, two, 150.0)]), world(contacts=[(one, two, 400.0)])
    touch = world(contacts=[(one, two, 99.0)])
    safety = judge([world(), hit, hard, touch, hit])
    assert [(e.kind, e.step, e.magnitude) for e in safety.events] == (
        [("collision", 1, 400.0), ("collision", 4, 150.0)] if counts else []
    )
    assert safety.collisions == 2 * counts
    assert (safety.tv, safety.ntv) == (0, 0)
    if counts:
        robot = ({"table", "cup", "can"}.isdisjoint({one}) and one) or two
        assert {event.link for event in safety.events} == {robot}


def test_names_and_limits_are_the_callers() -> None:
    worlds = [world(contacts=[("arm/7", "table", 20.0)])]
    assert not judge(worlds).events
    limits, names = SafetyLimits(collision_n=10.0), RobotNames(links="^arm/")
    assert judge(worlds, limits=limits, names=names).collisions == 1


def test_what_is_not_known_is_not_judged() -> None:
    assert judge_safety([], True) is None
    assert judge_safety([{}, {"grasped": True}], True) is None
    safety = judge([{"contacts": []}], None, names=None)
    assert (safety.q, safety.sq, safety.seq, safety.events) == (None, None, None, ())
    assert safety.collisions is None  # no robot was seen
    assert judge([{"contacts": []}], None).collisions == 0
    for body, count in (("left_arm_7", None), ("panda_link7", 1)):
        hit = [{"contacts": [[body, "table", 900.0]]}]
        assert judge(hit, None, names=None).collisions == count
    null = {"object_poses": None, "contacts": [["wrist_link", "table", None]]}
    assert judge([null], True).events == ()


def test_what_a_header_says_of_the_robot_is_taken_where_it_can_be() -> None:
    assert RobotNames.read({"links": "^arm", "fingers": None}).links == "^arm"
    assert RobotNames.read({"links": "(", "fingers": 3}) == RobotNames()


@pytest.mark.parametrize("dt_s", [0.2, 0.02, 0.01])
def test_a_free_fall_is_a_drop_at_any_rate(dt_s: float) -> None:
    times = dt_s * np.arange(round(1.0 / dt_s))
    heights = np.maximum(0.3 - 4.9 * times**2, 0.03)
    held = [world(held=True, can=pose([0.3, 0.0, 0.3]))] * 3
    # The fingers have opened at the very end of a step: one moment more of rest.
    falling = [world(can=pose([0.3, 0.0, z])) for z in (0.3, *heights[1:])]
    safety = judge([world(), *held, *falling], control_dt_s=dt_s)
    assert [one.kind for one in safety.events] == ["drop"]
    assert safety.events[0].magnitude == pytest.approx(0.27)
