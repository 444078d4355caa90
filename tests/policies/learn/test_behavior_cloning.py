"""The trainer on images of two coloured squares: the action points at the named one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from policies import Observation, load_policy  # noqa: E402
from policies.learn.behavior_cloning import Trainer, TrainingConfig  # noqa: E402
from policies.learn.dataset import Demonstrations  # noqa: E402
from policies.learn.openvla import TrainableOpenVLA  # noqa: E402
from policies.openvla.checkpoint import read_tensors  # noqa: E402

SIDE = 32
COLOURS = {"red": (220, 30, 30), "green": (30, 200, 60), "blue": (30, 60, 220)}


def squares(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    names = list(COLOURS)
    image = np.full((n, SIDE, SIDE, 3), 120, np.uint8)
    keypoints = np.zeros((n, 4, 2), np.float32)
    words = np.empty((n, 2), dtype="<U40")
    for i in range(n):
        left, top = rng.choice(5, 2, replace=False), rng.choice(5, 2, replace=False)
        for j, colour in enumerate(rng.choice(3, 2, replace=False)):
            x, y = int(left[j]) * 6 + 1, int(top[j]) * 6 + 1
            image[i, y : y + 5, x : x + 5] = COLOURS[names[colour]]
            keypoints[i, 1 + j] = [(x + 2.5) / SIDE * 2 - 1, (y + 2.5) / SIDE * 2 - 1]
            words[i, j] = f"put the {names[colour]} cube on the plate"
    action = np.zeros((n, 2, 7), np.float32)
    action[:, :, :2] = keypoints[:, 1:3] * 0.03
    action[:, :, 6] = 1.0
    return {
        "image": image,
        "action": action[:, 0],
        "action_other": action[:, 1],
        "episode": np.arange(n, dtype=np.int32),
        "step": np.zeros(n, np.int32),
        "keypoints": keypoints,
        "positions": np.concatenate([keypoints * 0.3, keypoints[..., :1] * 0], axis=2),
        "instruction": words[:, 0],
        "instruction_other": words[:, 1],
    }


@pytest.fixture(scope="module")
def data() -> Demonstrations:
    return Demonstrations(squares(400))


def config(steps: int, **changes: Any) -> TrainingConfig:
    return TrainingConfig(
        minutes=10.0, max_steps=steps, report_every=steps, warmup_steps=10, batch=16, **changes
    )


def openvla(data: Demonstrations, out: Path, steps: int, init: Path | None = None) -> Trainer:
    torch.manual_seed(0)
    return Trainer(TrainableOpenVLA(data, init), data, out, config(steps))


@pytest.mark.slow
def test_loss_falls_and_the_checkpoint_acts(data: Demonstrations, tmp_path: Path) -> None:
    trainer = openvla(data, tmp_path / "a", 60)
    rng = np.random.default_rng(0)
    batch = data.batch(data.train[:64], rng, augment=False)
    with torch.no_grad():
        before = trainer.trainable.losses(batch, rng, progress=0.0, augment=False).total
    trainer.run()
    with torch.no_grad():
        after = trainer.trainable.losses(batch, rng, progress=0.0, augment=False).total
    assert after < 0.75 * before
    policy = load_policy("openvla-mini", checkpoint=tmp_path / "a")
    out = policy.act(Observation(image=data.image[0], instruction=data.instructions[0]))
    assert out.action.shape == (7,)
    low, high = out.action_token_range or (0, 0)
    assert all(low <= token < high for token in np.asarray(out.token_ids))


def test_resumed_run_continues_where_it_stopped(data: Demonstrations, tmp_path: Path) -> None:
    openvla(data, tmp_path, 4).run()
    again = openvla(data, tmp_path, 6, tmp_path)
    again.resume()
    assert again.step == 4
    live = again.model.state_dict()
    averaged = read_tensors(tmp_path)
    assert any(not torch.equal(live[key], averaged[key]) for key in live)
    again.run()
    assert again.step == 6
    clock = json.loads((tmp_path / "training" / "state.json").read_text(encoding="utf-8"))
    assert clock["step"] == 6


def test_warm_start_keeps_words_and_statistics(data: Demonstrations, tmp_path: Path) -> None:
    openvla(data, tmp_path / "a", 2).run()
    second = TrainableOpenVLA(data, tmp_path / "a")
    first_config = json.loads((tmp_path / "a" / "config.json").read_text(encoding="utf-8"))
    assert second.model_json["norm_stats"] == first_config["norm_stats"]
    for key, value in read_tensors(tmp_path / "a").items():
        assert torch.equal(second.model.state_dict()[key], value)
