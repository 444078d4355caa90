"""The embedded WidowX task: contract, determinism, expert, disturbances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from envs.tabletop.disturbance import DISTURBANCES

pytestmark = [
    pytest.mark.slow,
    # SAPIEN and gymnasium warn about themselves while they are imported.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(scope="module")
def env() -> Iterator[Any]:
    from envs import make_env

    made = make_env("widowx-put-on")
    yield made
    made.close()


def expert_episode(env: Any, steps: int = 45, **options: Any) -> list[dict[str, Any]]:
    from envs.widowx.expert import expert_action

    obs, info = env.reset(options=options)
    rows = [{**obs, **info}]
    for _ in range(steps):
        obs, _, terminated, _, info = env.step(expert_action(env))
        assert not terminated
        rows.append({**obs, **info})
    return rows


def test_it_passes_gymnasiums_own_checker(env: Any) -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(env.unwrapped, skip_render_check=True)


def test_reset_shows_the_scene_of_its_index(env: Any) -> None:
    from envs.widowx.scene import make_scene

    for index in (0, 3):
        obs, info = env.reset(options={"scene": index})
        scene = make_scene(index)
        assert env.observation_space.contains(obs)
        assert info["instruction"] == scene.instruction
        assert not info["success"]
        for placement in (scene.named, scene.other):
            pose = info["object_poses"][placement.name]
            np.testing.assert_allclose(pose[:2], placement.xy_m, atol=1e-3)
        plate: Any = scene.target_xy_m
        np.testing.assert_allclose(info["object_poses"]["plate"][:2], plate, atol=1e-3)


def test_the_home_pose_is_simplerenvs(env: Any) -> None:
    obs, _ = env.reset(options={"scene": 0})
    np.testing.assert_allclose(obs["tcp_position"], [0.2921, -0.0061, 0.1353], atol=1e-3)
    assert obs["gripper"][0] == pytest.approx(1.0, abs=0.05)


def test_the_expert_puts_the_named_object_on_the_plate(env: Any) -> None:
    for index in range(4):
        rows = expert_episode(env, scene=index)
        assert rows[-1]["success"]
        assert not rows[-1]["wrong_object"]
        assert any(row["grasped"] for row in rows)
        assert not rows[-1]["grasped"]
        assert rows[-1]["goal_distance"] < 0.06 < rows[0]["goal_distance"]


def test_swapped_instruction_swaps_success_and_wrong_object(env: Any) -> None:
    from envs.widowx.expert import expert_action

    rows = expert_episode(env, scene=1, swap_instruction=True)
    assert rows[-1]["success"]
    env.reset(options={"scene": 1})
    for _ in range(45):
        _, _, _, _, info = env.step(expert_action(env, target="other"))
    assert info["wrong_object"]
    assert not info["success"]


def test_an_episode_depends_on_its_scene_alone(env: Any) -> None:
    first = expert_episode(env, steps=30, scene=5)
    expert_episode(env, steps=25, scene=2)
    again = expert_episode(env, steps=30, scene=5)
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one["image"], two["image"])
        np.testing.assert_array_equal(one["tcp_position"], two["tcp_position"])
        assert one["goal_distance"] == two["goal_distance"]


def test_a_step_moves_the_tool_in_the_base_frame(env: Any) -> None:
    for axis, sign in ((0, -1.0), (1, 1.0), (2, 1.0)):
        obs, _ = env.reset(options={"scene": 0})
        before = obs["tcp_position"]
        action = np.zeros(7)
        action[axis], action[6] = sign * 0.02, 1.0
        for _ in range(3):
            env.step(action)
        obs, *_ = env.step(np.array([0.0] * 6 + [1.0]))  # the arm lags its target by a centimetre
        moved = obs["tcp_position"] - before
        assert moved[axis] == pytest.approx(sign * 0.06, abs=0.01)
        assert np.abs(np.delete(moved, axis)).max() < 0.008


def test_rotation_is_an_axis_angle_in_the_base_frame(env: Any) -> None:
    from scipy.spatial.transform import Rotation

    obs, _ = env.reset(options={"scene": 0})
    start = Rotation.from_quat(np.roll(obs["tcp_quaternion"], -1))
    rotvec = np.array([0.05, -0.04, 0.1])
    for _ in range(2):
        env.step(np.concatenate([np.zeros(3), rotvec, [1.0]]))
    obs, *_ = env.step(np.array([0.0] * 6 + [1.0]))
    end = Rotation.from_quat(np.roll(obs["tcp_quaternion"], -1))
    np.testing.assert_allclose((end * start.inv()).as_rotvec(), 2 * rotvec, atol=0.03)


def test_bad_actions_and_options_are_refused(env: Any) -> None:
    env.reset(options={"scene": 0})
    with pytest.raises(ValueError, match="7 finite numbers"):
        env.step(np.full(7, np.nan))
    with pytest.raises(ValueError, match="7 finite numbers"):
        env.step(np.zeros(6))
    with pytest.raises(ValueError, match="scene, disturbance"):
        env.reset(options={"scen": 0})


def test_horizon_truncates_and_success_does_not_end(env: Any) -> None:
    rows = expert_episode(env, steps=79, scene=0)
    assert sum(row["success"] for row in rows) > 20
    *_, truncated, _ = env.step(np.array([0.0] * 6 + [1.0]))
    assert truncated


def test_every_disturbance_changes_what_it_says(env: Any) -> None:
    clean = expert_episode(env, steps=14, scene=3)
    for name in DISTURBANCES:
        rows = expert_episode(env, steps=14, scene=3, disturbance=name)
        picture_changed = bool(np.any(rows[0]["image"] != clean[0]["image"]))
        assert picture_changed == (name in {"camera_shifted", "lights_changed", "unseen_colour"})
        named = next(iter(rows[0]["object_poses"]))
        moved = np.linalg.norm(
            rows[-1]["object_poses"][named][:2] - rows[0]["object_poses"][named][:2]
        )
        assert (moved > 0.02) == (name in {"object_pushed", "object_removed"}), name
        arm_differs = bool(np.any(rows[4]["tcp_position"] != clean[4]["tcp_position"]))
        assert arm_differs == (name in {"action_noise", "action_delay"}), name
        assert rows[0]["disturbance"] == name


def test_pixels_fall_on_what_they_name(env: Any) -> None:
    for index in range(5):
        obs, _ = env.reset(options={"scene": index})
        x, y = env.unwrapped.pixel_of(env.unwrapped.state.named_position)
        column, row = (round((v + 1) / 2 * 96) for v in (x, y))
        seen = obs["image"][row, column].astype(float)
        rgb = np.array(env.unwrapped.scene.named.rgb)
        # The colour seen there is more like the object's than like the table's.
        table = np.array([0.45, 0.28, 0.16])

        def angle(a: Any, b: Any) -> float:
            return float(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))

        assert angle((seen / 255) ** 2.2, rgb) > angle((seen / 255) ** 2.2, table)


def test_depth_and_camera_are_those_of_the_rig(env: Any) -> None:
    import sapien

    from envs.widowx.agent import BASE_POSE

    eye, aim = np.array([-0.62, 0.0, 1.25]), np.array([-0.13, 0.005, 0.905])
    ahead = (aim - eye) / np.linalg.norm(aim - eye)
    focal = 48.0 / np.tan(0.56 / 2)
    matrix = [[focal, 0, 48], [0, focal, 48], [0, 0, 1]]
    np.testing.assert_allclose(env.unwrapped.camera_matrix, matrix, rtol=1e-5)
    for index in range(3):
        env.reset(options={"scene": index})
        position = env.unwrapped.state.named_position
        column, row = ((env.unwrapped.pixel_of(position) + 1) / 2 * 96).astype(int)
        away = float((np.asarray((BASE_POSE * sapien.Pose(position)).p) - eye) @ ahead)
        # The picture shows the object's surface, its place is its middle.
        assert 0.0 < away - env.unwrapped.depth[row, column] < 0.04
