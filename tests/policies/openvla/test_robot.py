"""``robot=``: the same model, its actions as SimplerEnv takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from monitor.errors import ConfigError  # noqa: E402
from policies import load_policy  # noqa: E402


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "golden" / "openvla_tiny"


@pytest.fixture(scope="module")
def question(folder: Path) -> dict[str, Any]:
    inputs = np.load(folder / "inputs.npz")
    return {"input_ids": inputs["input_ids"], "pixel_values": inputs["pixel_values"]}


def policy(folder: Path, **kwargs: Any) -> Any:
    return load_policy("openvla", checkpoint=folder, **kwargs)


def test_widowx_gets_axis_angle_and_a_binary_gripper(
    folder: Path, question: dict[str, Any]
) -> None:
    rotation = pytest.importorskip("scipy.spatial.transform").Rotation
    plain = policy(folder, unnorm_key="bridge_orig", samples=3).infer(**question)
    # bridge_orig need not be named: the robot implies it.
    out = policy(folder, robot="widowx", samples=3).infer(**question)
    for got, raw in zip([out.action, *out.samples], [plain.action, *plain.samples], strict=True):
        np.testing.assert_array_equal(got[:3], raw[:3])
        np.testing.assert_allclose(
            got[3:6], rotation.from_euler("xyz", raw[3:6]).as_rotvec(), atol=1e-12
        )
        assert got[6] == (1.0 if raw[6] > 0.5 else -1.0)
    np.testing.assert_array_equal(out.token_logits, plain.token_logits)
    np.testing.assert_array_equal(out.normalized_action, plain.normalized_action)


def test_google_robot_forgets_its_gripper_at_reset(folder: Path, question: dict[str, Any]) -> None:
    robot = policy(folder, robot="google_robot", unnorm_key="bridge_orig")
    robot.reset("wave")
    first = robot.infer(**question).action
    dark = {**question, "pixel_values": question["pixel_values"] * 0.0 - 1.0}
    robot.infer(**dark)
    robot.reset("wave")
    np.testing.assert_array_equal(robot.infer(**question).action, first)
    assert first[6] == 0.0, "the first step changes nothing"
    assert robot.robot.name == "google_robot"


def test_with_a_robot_large_pictures_are_first_shrunk_by_areas(folder: Path) -> None:
    image = np.random.default_rng(0).integers(0, 256, (448, 896, 3), dtype=np.uint8)
    robot = policy(folder, robot="widowx")
    plain = policy(folder, unnorm_key="bridge_orig")
    # 2 x 4 pixels become one; what is as large as the model's image already is left to it.
    means = np.round(image.reshape(224, 2, 224, 4, 3).mean(axis=(1, 3))).astype(np.uint8)
    half_steps = np.abs(robot.preprocess(image) - plain.preprocess(means)).max()
    assert half_steps <= 1.01 / 255.0 / 0.224
    assert np.abs(robot.preprocess(image) - plain.preprocess(image)).max() > 0.5
    small = image[:64, :64]
    np.testing.assert_array_equal(robot.preprocess(small), plain.preprocess(small))


def test_a_mistyped_argument_is_said_before_the_weights_are_read(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    with pytest.raises(ConfigError, match="did you mean 'bridge_orig'"):
        policy(tmp_path, unnorm_key="bridge_org")


def test_the_data_set_of_a_robot_is_not_guessed_among_others(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"unnorm_key=, one of \['bridge_orig', 'toy_nomask'\]"):
        policy(folder, robot="google_robot")


def test_a_checkpoint_in_the_simulators_units_needs_no_robot() -> None:
    with pytest.raises(ConfigError, match=r"goes down to -1: .* leave robot out"):
        load_policy("openvla-mini", robot="widowx")
