"""The two trainable policies with action chunks and a frozen encoder, on images of one square."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from monitor.errors import ConfigError  # noqa: E402
from policies import Observation, load_policy  # noqa: E402
from policies.learn.behavior_cloning import Trainer, TrainingConfig  # noqa: E402
from policies.learn.dataset import Demonstrations  # noqa: E402
from policies.learn.depth import teach_depth  # noqa: E402
from policies.learn.feature_cache import FeatureCache  # noqa: E402
from policies.learn.frozen_encoder import FrozenEncoder  # noqa: E402
from policies.learn.registry import new_trainable  # noqa: E402
from policies.spatialvla.conv_depth import ConvDepth, ConvDepthConfig  # noqa: E402

WORDS = ("put the red cube on the plate", "put the blue can on the plate")
SIDE, FRAMES, LENGTH = 96, 48, 8


def columns() -> dict[str, Any]:
    """Episodes of eight frames; the square's place is the action."""
    rng = np.random.default_rng(0)
    image = np.full((FRAMES, SIDE, SIDE, 3), 130, np.uint8)
    image[:, : SIDE // 2] = 60
    spot = rng.uniform(-1.0, 1.0, (FRAMES, 2))
    for i, (x, y) in enumerate((spot * 36 + 48).astype(int)):
        image[i, y - 5 : y + 5, x - 5 : x + 5] = (210, 30, 30)
    action = np.zeros((FRAMES, 7), np.float32)
    action[:, :2] = 0.03 * spot
    action[:, 6] = np.where(spot[:, 0] > 0, 1.0, -1.0)
    depth = np.full((FRAMES, SIDE // 8, SIDE // 8), 0.7, np.float16)
    depth[:, :6] = 0.9
    return {
        "image": image,
        "action": action,
        "action_other": -action,
        "episode": np.arange(FRAMES, dtype=np.int32) // LENGTH,
        "step": np.arange(FRAMES, dtype=np.int32) % LENGTH,
        "keypoints": np.zeros((FRAMES, 4, 2), np.float32),
        "positions": np.zeros((FRAMES, 4, 3), np.float32),
        "depth": depth,
        "camera": np.tile(
            np.array([[167, 0, 48], [0, 167, 48], [0, 0, 1]], np.float32), (FRAMES, 1, 1)
        ),
        "instruction": np.array([WORDS[0]] * FRAMES),
        "instruction_other": np.array([WORDS[1]] * FRAMES),
    }


@pytest.fixture(scope="module")
def data() -> Demonstrations:
    return Demonstrations(columns(), horizon=4)


@pytest.fixture(scope="module")
def features(data: Demonstrations) -> FeatureCache:
    torch.manual_seed(0)
    return FeatureCache.of(data, FrozenEncoder(), ConvDepth(ConvDepthConfig()), seed=0)


def test_a_chunk_ends_with_its_episode_and_is_nobodys_for_the_other_instruction(
    data: Demonstrations,
) -> None:
    rows = np.array([0, 5, 7, 13] * 8)
    batch = data.batch(rows, np.random.default_rng(0), augment=False)
    own = batch.other == 0
    assert 0 < own.sum() < len(rows)
    ends = {0: 4, 5: 3, 7: 1, 13: 3}
    for row, mine, known, chunk in zip(rows, own, batch.known, batch.chunk, strict=True):
        count = ends[int(row)] if mine else 1
        assert known.tolist() == [True] * count + [False] * (4 - count)
        actions = data.action[row : row + count, 0 if mine else 1]
        np.testing.assert_array_equal(chunk[:count], actions)
    np.testing.assert_array_equal(batch.action, batch.chunk[:, 0])


def test_features_are_what_the_encoder_returns(
    data: Demonstrations, features: FeatureCache, tmp_path: Path
) -> None:
    encoder = FrozenEncoder()
    rows, other = np.array([3, 20]), np.array([0, 1])
    pixels = torch.from_numpy(data.image[rows]).permute(0, 3, 1, 2).float() / 127.5 - 1.0
    words = encoder.embedded([WORDS[0], WORDS[1]])
    with torch.no_grad():
        true = encoder.tower(pixels, words).tokens
    features.save(tmp_path)
    for one in (features, FeatureCache.load(tmp_path)):
        tokens, depth = one.pick(rows, other, None)
        np.testing.assert_allclose(tokens.numpy(), true.numpy(), atol=0.02)
        assert depth.shape == (2, 1, 12, 12)
    varied, _ = features.pick(np.full(16, 3), np.zeros(16, np.int64), np.random.default_rng(0))
    assert len({round(float(one), 3) for one in varied.square().sum(dim=(1, 2))}) == 2


@pytest.mark.slow
def test_the_depth_network_learns_what_it_is_shown(data: Demonstrations) -> None:
    torch.manual_seed(0)
    error = teach_depth(ConvDepth(ConvDepthConfig()), data, seed=0, steps=40)
    assert error < 0.06  # one depth for all cells is 0.1 off
    bare = columns()
    del bare["depth"]
    with pytest.raises(ConfigError, match="hold no depth"):
        teach_depth(ConvDepth(ConvDepthConfig()), Demonstrations(bare), seed=0, steps=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spatialvla-mini", "pi0-mini"])
def test_loss_falls_the_eyes_stay_and_the_checkpoint_acts(
    name: str, data: Demonstrations, features: FeatureCache, tmp_path: Path
) -> None:
    trainable = new_trainable(name, data, None, seed=0, features=features)
    rng = np.random.default_rng(0)
    batch = data.batch(np.arange(FRAMES), rng, augment=False)
    with torch.no_grad():
        before = trainable.losses(
            batch, np.random.default_rng(1), progress=1.0, augment=False
        ).total
    config = TrainingConfig(
        minutes=10.0, max_steps=16, report_every=16, warmup_steps=2, batch=8, learning_rate=3e-3
    )
    Trainer(trainable, data, tmp_path, config).run()
    with torch.no_grad():
        after = trainable.losses(batch, np.random.default_rng(1), progress=1.0, augment=False).total
    assert after < 0.9 * before
    policy: Any = load_policy(name, checkpoint=tmp_path)
    out = policy.act(Observation(image=data.image[0], instruction=WORDS[0]))
    assert out.chunk.shape == (4, 7)
    tower = (
        policy.model.vision_tower
        if name == "spatialvla-mini"
        else policy.model.model.vlm.vision_tower
    )
    for key, value in FrozenEncoder().tower.state_dict().items():
        torch.testing.assert_close(tower.state_dict()[key], value.half().float(), msg=key)


def test_missing_features_and_unknown_policies_are_named(
    data: Demonstrations, features: FeatureCache
) -> None:
    twice = {key: np.concatenate([one, one]) for key, one in columns().items()}
    with pytest.raises(ConfigError, match="features cover 48 frames, the demonstrations have 96"):
        new_trainable("pi0-mini", Demonstrations(twice), None, seed=0, features=features)
    with pytest.raises(ConfigError, match=r"pi0-mini is trained on vision features"):
        new_trainable("pi0-mini", data, None, seed=0)
    with pytest.raises(ConfigError, match="did you mean 'pi0-mini'"):
        new_trainable("pi0-min", data, None, seed=0)
