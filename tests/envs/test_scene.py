"""A scene is a function of its index and leaves room for the fingers."""

from __future__ import annotations

import numpy as np
import pytest

from envs.google.scene import MOVE_NEAR, PICK
from envs.tabletop.disturbance import DISTURBANCES, make_disturbance
from envs.tabletop.scene import COLOURS, SAME_COLOUR_SHARE, draw_scene
from envs.widowx.scene import PUT_IN, PUT_ON, SHAPES, make_scene

SCENES = [make_scene(index) for index in range(400)]


def test_same_index_is_the_same_scene_and_others_differ() -> None:
    assert [make_scene(index) for index in range(20)] == SCENES[:20]
    assert len({scene.target_xy_m for scene in SCENES}) == len(SCENES)


def test_the_instruction_tells_the_two_objects_apart() -> None:
    for scene in SCENES:
        assert scene.named.name != scene.other.name
        assert scene.named.name in scene.instruction
        assert scene.other.name not in scene.instruction
        assert scene.swapped().instruction == f"put the {scene.other.name} on the plate"
        assert scene.swapped().swapped() == scene


def test_objects_and_plate_keep_apart() -> None:
    for spread in (PUT_ON, PUT_IN, PICK, MOVE_NEAR):
        for scene in (draw_scene(spread, index) for index in range(100)):
            named, other = np.array(scene.named.xy_m), np.array(scene.other.xy_m)
            assert np.linalg.norm(named - other) >= spread.object_gap_m
            if scene.target_xy_m is None:
                continue
            target = np.array(scene.target_xy_m)
            nearest = min(np.linalg.norm(named - target), np.linalg.norm(other - target))
            assert nearest >= spread.target_gap_m


def test_a_third_object_is_another_one_and_named_too() -> None:
    for scene in (draw_scene(MOVE_NEAR, index) for index in range(100)):
        assert scene.goal is not None
        assert scene.goal.name in scene.instruction
        assert len({placement.name for placement in scene.placements.values()}) == 3
        assert scene.goal.xy_m == scene.target_xy_m
        assert draw_scene(PICK, scene.index).goal is None


def test_every_colour_and_shape_is_named_and_colour_alone_does_not_decide() -> None:
    assert {scene.named.colour for scene in SCENES} == set(COLOURS)
    assert {scene.named.shape for scene in SCENES} == set(SHAPES)
    same = np.mean([scene.named.colour == scene.other.colour for scene in SCENES])
    assert abs(same - SAME_COLOUR_SHARE) < 0.08


def test_a_negative_index_is_refused() -> None:
    with pytest.raises(ValueError, match="numbered from 0"):
        make_scene(-1)


@pytest.mark.parametrize("name", sorted(DISTURBANCES))
def test_disturbances_are_fixed_by_name_and_scene(name: str) -> None:
    assert make_disturbance(name, 4) == make_disturbance(name, 4)
    assert make_disturbance(name, 4) != make_disturbance(name, 5)


def test_noise_has_the_size_that_it_declares() -> None:
    disturbance = make_disturbance("action_noise", 1)
    draws = np.stack([disturbance.noise(1, step) for step in range(2000)])
    assert draws.std() == pytest.approx(disturbance.noise_std_m, rel=0.05)
    np.testing.assert_array_equal(disturbance.noise(1, 3), disturbance.noise(1, 3))


def test_an_unknown_disturbance_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="camera_shifted"):
        make_disturbance("earthquake", 0)
