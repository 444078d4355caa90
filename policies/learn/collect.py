"""Demonstrations: the scripted expert moves the arm, disturbed on purpose, and labels every frame.

The label is what the expert would do; what is executed is the label plus noise and short bursts of
wrong motion (DART, Laskey et al. 2017), so that the data hold ways back from mistakes. Every frame
is labelled for both instructions: the same image with the other object named is another sample.

    python -m policies.learn.collect --scenes 1000000:1000600 --out data/demos/a.npz
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from envs import make_env
from envs.widowx.expert import expert_action
from policies.base import FloatArray

__all__ = ["FIRST_TRAINING_SCENE", "Noise", "Recorder", "collect"]

log = logging.getLogger(__name__)

FIRST_TRAINING_SCENE: Final = 1_000_000
"""Scenes below this index are never used in training."""

STEPS_AFTER_SUCCESS: Final = 10
DEPTH_CELL_PX: Final = 8
"""Side of the squares over which the depth of an image is averaged, pixels."""


@dataclass
class Noise:
    """Deviation of the executed action from the expert's, drawn per episode.

    Attributes:
        rng: its only source of chance.
        std_m: standard deviation of the translation noise of this episode, metres.
        burst_rate: probability per step that a burst of 2 to 5 steps begins.
    """

    rng: np.random.Generator
    std_m: float = 0.0
    burst_rate: float = 0.0
    _left: int = 0
    _drift: FloatArray = field(default_factory=lambda: np.zeros(3))
    _flip: bool = False

    def reset(self) -> None:
        """Draw the size of the noise for a new episode."""
        self.std_m = float(self.rng.choice([0.0, 0.004, 0.008]))
        self.burst_rate = float(self.rng.choice([0.0, 0.04, 0.08]))
        self._left = 0

    def apply(self, action: FloatArray) -> FloatArray:
        """Return the action to execute, shape ``(7,)``."""
        noisy = action.copy()
        noisy[:3] += self.rng.normal(0.0, self.std_m, 3)
        if self._left == 0 and self.rng.random() < self.burst_rate:
            self._left = int(self.rng.integers(2, 6))
            direction = self.rng.normal(size=3)
            size = self.rng.uniform(0.01, 0.03)
            self._drift = size * direction / np.linalg.norm(direction)
            self._flip = bool(self.rng.random() < 0.2)
        if self._left > 0:
            self._left -= 1
            noisy[:3] += self._drift
            if self._flip:
                noisy[6] = -noisy[6]
        return noisy


class Recorder:
    """Frames of many episodes in the layout that the trainer reads (one .npz a shard)."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, env: Any, image: NDArray[np.uint8], episode: int, step: int) -> FloatArray:
        """Record the present frame with both labels; return the expert's action, shape ``(7,)``."""
        state, scene = env.unwrapped.state, env.unwrapped.scene
        points = [
            state.tcp_position,
            state.named_position,
            state.other_position,
            state.target_position,
        ]
        action = expert_action(env)
        self._rows.append(
            {
                "image": image,
                "action": action.astype(np.float32),
                "action_other": expert_action(env, target="other").astype(np.float32),
                "episode": np.int32(episode),
                "step": np.int32(step),
                "keypoints": np.stack([env.unwrapped.pixel_of(p) for p in points]).astype(
                    np.float32
                ),
                "positions": np.stack(points).astype(np.float32),
                "depth": cell_means(env.unwrapped.depth).astype(np.float16),
                "camera": env.unwrapped.camera_matrix.astype(np.float32),
                "instruction": scene.instruction,
                "instruction_other": scene.swapped().instruction,
            }
        )
        return action

    def save(self, path: Path) -> None:
        """Write the shard; a partial file never appears under its final name."""
        columns = {key: np.stack([row[key] for row in self._rows]) for key in self._rows[0]}
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial.npz")
        np.savez(partial, allow_pickle=False, **columns)
        partial.rename(path)


def cell_means(depth: FloatArray) -> FloatArray:
    """Means over squares of 8 × 8 pixels, ``(H / 8, W / 8)``.

    >>> cell_means(np.ones((16, 8))).tolist()
    [[1.0], [1.0]]
    """
    height, width = (side // DEPTH_CELL_PX for side in depth.shape)
    cells = depth.reshape(height, DEPTH_CELL_PX, width, DEPTH_CELL_PX)
    return np.asarray(cells.mean(axis=(1, 3)))


def collect(
    env: Any,
    scenes: Iterable[int],
    recorder: Recorder,
    *,
    seed: int,
    on_episode: Callable[[int, bool], None] | None = None,
) -> int:
    """Record one noisy expert episode per scene.

    Args:
        env: ``widowx-put-on``.
        scenes: scene indices.
        recorder: where the frames go.
        seed: random seed of the noise.
        on_episode: called with (scene, success) after each.

    Returns:
        Number of successful episodes.
    """
    successes = 0
    for scene in scenes:
        noise = Noise(np.random.default_rng([seed, scene]))
        noise.reset()
        obs, info = env.reset(options={"scene": scene})
        left = STEPS_AFTER_SUCCESS
        for step in range(env.unwrapped.horizon_steps):
            action = recorder.add(env, obs["image"], scene, step)
            obs, _, _, truncated, info = env.step(noise.apply(action))
            left -= bool(info["success"])
            if left <= 0 or truncated:
                break
        successes += bool(info["success"])
        if on_episode is not None:
            on_episode(scene, bool(info["success"]))
    return successes


def main() -> None:
    """Command line of the collector."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", required=True, help="first:end, end not included")
    parser.add_argument("--out", required=True, type=Path, help="file to write (.npz)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the noise")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    first, end = (int(part) for part in args.scenes.split(":"))
    recorder = Recorder()

    def report(scene: int, success: bool) -> None:
        done = scene - first + 1
        if done % 50 == 0 or not success:
            log.info("%d episodes, %d frames, success=%s", done, len(recorder), success)

    good = collect(
        make_env("widowx-put-on"), range(first, end), recorder, seed=args.seed, on_episode=report
    )
    recorder.save(args.out)
    log.info("%s: %d of %d succeeded, %d frames", args.out, good, end - first, len(recorder))


if __name__ == "__main__":
    main()
