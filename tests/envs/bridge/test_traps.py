"""ManiSkill's traps, undone: shared backgrounds, missing assets, picture size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envs.bridge.assets import MissingAssetsError, missing_assets, missing_files
from envs.bridge.tasks import TASKS, bridge_task

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(scope="module")
def pair(shared: Path) -> Iterator[tuple[Any, Any]]:
    from envs import make_env

    first = make_env("bridge/widowx_stack_cube", image_size=(60, 80))
    second = make_env("bridge/widowx_put_eggplant_in_basket", image_size=(60, 80))
    yield first, second
    first.close()
    second.close()


@pytest.mark.slow
def test_one_environment_does_not_change_the_background_of_another(
    pair: tuple[Any, Any], shared: Path
) -> None:
    import cv2

    dataset = shared / "assets/maniskill/data/tasks/bridge_v2_real2sim_dataset"
    for env in pair:
        photograph: Any = cv2.imread(str(dataset / "real_inpainting" / env.task.photograph))
        wanted = cv2.resize(cv2.cvtColor(photograph, cv2.COLOR_BGR2RGB), (80, 60)).astype(int)
        image = env.reset(options={"scene": 0})[0]["image"]
        alike = np.abs(image.astype(int) - wanted).max(axis=2) == 0
        assert alike.mean() > 0.4, env.task.name


@pytest.mark.slow
def test_a_smaller_picture_shows_the_same_view(pair: tuple[Any, Any]) -> None:
    env = pair[0]
    _, info = env.reset(options={"scene": 0})
    column, row = (env.pixel_of(info["object_poses"][info["object"]][:3]) + 1) / 2 * [80, 60]
    red, green, blue = env.last[0]["image"][int(row), int(column)].astype(int)
    assert green > red
    assert green > blue, "the green cube is where its pose says"


@pytest.mark.slow
def test_a_turn_of_ninety_degrees_at_once_is_no_error(pair: tuple[Any, Any]) -> None:
    env = pair[0]
    env.reset(options={"scene": 0})
    obs, *_ = env.step(np.array([0.0, 0.0, 0.0, 0.0, 9.0, 0.0, 1.0]))
    assert np.isfinite(obs["tcp_quaternion"]).all()


def test_missing_meshes_are_named_with_the_commands_that_bring_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from envs import make_env

    monkeypatch.setenv("MS_ASSET_DIR", str(tmp_path))
    with pytest.raises(MissingAssetsError) as caught:
        make_env("bridge/widowx_carrot_on_plate")
    for words in ("download_asset bridge_v2_real2sim", "download_asset widowx250s", "MS_ASSET_DIR"):
        assert words in str(caught.value)
    assert str(tmp_path) in (missing_assets("widowx_carrot_on_plate") or "")


@pytest.mark.parametrize("name", TASKS)
def test_the_shared_assets_are_complete(name: str, shared: Path) -> None:
    folder = shared / "assets/maniskill/data"
    assert missing_files(bridge_task(name), folder) == ()


def test_a_model_without_a_picture_is_missing(tmp_path: Path) -> None:
    task = bridge_task("widowx_stack_cube")
    for path in missing_files(task, tmp_path):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert missing_files(task, tmp_path) == ()
    model = tmp_path / "tasks/bridge_v2_real2sim_dataset/custom/models" / task.object
    (model / "textured.obj").unlink()
    assert [path.name for path in missing_files(task, tmp_path)] == ["textured.obj"]


def test_assets_that_come_after_maniskill_are_refused(tmp_path: Path, shared: Path) -> None:
    from envs.bridge.simulator import make_simulator

    with pytest.raises(ValueError, match="set MS_ASSET_DIR before Python starts"):
        make_simulator(bridge_task("widowx_stack_cube"), (60, 80), tmp_path)


def test_an_unknown_task_suggests_a_near_one() -> None:
    with pytest.raises(ValueError, match="did you mean 'widowx_stack_cube'"):
        bridge_task("widowx_stack_cubes")
