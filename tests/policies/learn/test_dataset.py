from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policies.learn.dataset import (
    SHIFT_PX,
    Demonstrations,
    action_statistics,
    shifted,
    soft_targets,
)
from policies.openvla.tokens import bin_centers, decode_ids, encode_actions


def columns(n: int = 80, side: int = 32) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "image": rng.integers(0, 256, (n, side, side, 3), dtype=np.uint8),
        "action": np.full((n, 7), 0.01, np.float32),
        "action_other": np.full((n, 7), -0.01, np.float32),
        "episode": np.arange(n, dtype=np.int32) // 2,
        "step": np.arange(n, dtype=np.int32) % 2,
        "keypoints": rng.uniform(-0.8, 0.8, (n, 4, 2)).astype(np.float32),
        "positions": rng.uniform(-0.3, 0.3, (n, 4, 3)).astype(np.float32),
        "instruction": np.array(["put the red cube on the plate"] * n),
        "instruction_other": np.array(["put the blue can on the plate"] * n),
    }


def test_label_instruction_and_points_change_together() -> None:
    data = Demonstrations(columns())
    rows = np.arange(60)
    batch = data.batch(rows, np.random.default_rng(1), augment=False)
    other = batch.action[:, 0] < 0
    assert 10 < other.sum() < 50
    words = np.array([data.instructions[i] for i in batch.prompt])
    assert all("blue" in w for w in words[other])
    assert all("red" in w for w in words[~other])
    swap = [0, 2, 1, 3]
    np.testing.assert_array_equal(batch.keypoints[~other], data.keypoints[rows[~other]])
    np.testing.assert_array_equal(batch.keypoints[other], data.keypoints[rows[other]][:, swap])
    np.testing.assert_array_equal(batch.positions[other], data.positions[rows[other]][:, swap])


def test_frames_whose_object_fell_off_are_dropped() -> None:
    given = columns()
    given["positions"][10, 1] = [0.0, 0.0, -5.0]
    given["keypoints"][12, 1] = [3.0, 0.0]
    given["keypoints"][14, 2] = [3.0, 0.0]
    data = Demonstrations(given)
    kept = set(data.train) | set(data.validation)
    assert kept == set(range(80)) - {10, 12}
    batch = data.batch(np.full(50, 14), np.random.default_rng(0), augment=False)
    assert (batch.action > 0).all()


def test_validation_episodes_are_not_trained_on() -> None:
    data = Demonstrations(columns())
    episodes = columns()["episode"]
    assert not set(episodes[data.train]) & set(episodes[data.validation])


def test_shift_moves_picture_and_points_alike() -> None:
    image = np.zeros((40, 32, 32, 3), np.uint8)
    image[:, 16, 12] = 255
    moved, by = shifted(image, np.random.default_rng(0))
    for image, (dx, dy) in zip(moved, by * 16.0, strict=True):
        y, x = np.argwhere(image[..., 0] == 255)[0]
        assert (x - 12, y - 16) == (round(dx), round(dy))
    assert np.abs(by * 16).max() <= SHIFT_PX


@pytest.mark.parametrize("sigma", [3.0, 1.0])
def test_soft_targets_peak_at_the_id_that_upstream_encodes(sigma: float) -> None:
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, 200)
    target = soft_targets(actions, sigma)
    np.testing.assert_allclose(target.sum(axis=-1), 1.0, atol=1e-5)
    ids = target.argmax(axis=-1) + 31744
    assert np.abs(ids - encode_actions(actions, 32000)).max() <= 1
    half_bin = 1.0 / 255
    assert np.abs(decode_ids(ids, 32000) - actions).max() <= half_bin + 1e-9


def test_soft_target_mean_is_the_action() -> None:
    target = soft_targets(np.array([0.123]), 3.0)[0, 1:]
    assert (target * bin_centers()[::-1]).sum() == pytest.approx(0.123, abs=1e-3)


def test_statistics_leave_the_gripper_and_do_not_blow_up_rotation() -> None:
    rng = np.random.default_rng(0)
    action = np.concatenate(
        [rng.uniform(-0.03, 0.03, (5000, 3)), rng.normal(0, 1e-3, (5000, 3)), np.ones((5000, 1))],
        axis=1,
    ).astype(np.float32)
    out = action_statistics(action)
    span = np.array(out["q99"]) - np.array(out["q01"])
    np.testing.assert_allclose(span[:3], 0.06 * 0.98, rtol=0.02)
    np.testing.assert_allclose(span[3:6], 0.1, atol=1e-9)
    assert out["mask"] == [True] * 6 + [False]


def test_shards_are_joined(tmp_path: Path) -> None:
    for name in ("a", "b"):
        np.savez(tmp_path / f"{name}.npz", **columns(10))
    assert len(Demonstrations.load(sorted(tmp_path.glob("*.npz")))) == 20
    with pytest.raises(FileNotFoundError, match=r"policies\.learn\.collect"):
        Demonstrations.load([])
