"""Demonstrations in memory: frames with both labels, cut into batches of tokens.

Every frame serves two instructions: the one of its episode and the one that names the other object.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["DATA_NAME", "Batch", "Demonstrations", "action_statistics", "shards", "soft_targets"]

DATA_NAME: Final = "vlawatch_widowx_put_on"
"""Key of the statistics of these demonstrations."""

HELD_OUT_EVERY: Final = 40
"""One episode in so many is kept for validation."""
MIN_ROTATION_RANGE_RAD: Final = 0.1
OTHER_SHARE: Final = 0.3
"""Share of samples with the other instruction; on its own frames a policy sees few of them."""
SHIFT_PX: Final = 3
TABLE_M: Final = 0.7
"""An object farther from the robot's base than this has left the table; such frames are dropped."""
VIEW: Final = 1.05

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Samples of one training step.

    Attributes:
        rows: rows of the demonstrations, ``(B,)``.
        other: 1 where the instruction is the one that names the other object, ``(B,)``.
        image: shape ``(B, S, S, 3)`` uint8.
        chunk: this action and those that followed it, in the environment's units, ``(B, H, 7)``.
        known: which actions of the chunk are known, ``(B, H)``: an episode ends, and the
            expert of the other instruction was never followed.
        prompt: row of the table of instructions, ``(B,)``.
        keypoints: keypoints of tool, named object, other object, target in [-1, 1], ``(B, 4, 2)``.
        positions: positions of these four, metres, ``(B, 4, 3)``.
    """

    rows: NDArray[np.int64]
    other: NDArray[np.int64]
    image: NDArray[np.uint8]
    chunk: FloatArray
    known: NDArray[np.bool_]
    prompt: NDArray[np.int64]
    keypoints: FloatArray
    positions: FloatArray

    @property
    def action(self) -> FloatArray:
        """What to do now, in the environment's units, ``(B, 7)``."""
        return self.chunk[:, 0]


class Demonstrations:
    """Shards of :mod:`policies.learn.collect`, all in memory.

    Attributes:
        horizon: actions of a sample; a policy that plans no chunk needs one.
        depth: means over squares of 8 pixels, metres, ``(n, S / 8, S / 8)``; None in shards of
            before they held it.
        camera: matrix of the camera, pixels, ``(3, 3)``; None where unknown.
    """

    def __init__(self, columns: dict[str, Any], *, horizon: int = 1) -> None:
        self.horizon = horizon
        words = [columns["instruction"], columns["instruction_other"]]
        self.instructions: list[str] = np.unique(np.concatenate(words)).tolist()
        self.prompt = np.stack([np.searchsorted(self.instructions, w) for w in words], axis=1)
        self.image = columns["image"]
        self.depth: NDArray[np.float16] | None = columns.get("depth")
        self.camera: FloatArray | None = columns["camera"][0] if "camera" in columns else None
        self.action = np.stack([columns["action"], columns["action_other"]], axis=1)
        self.keypoints = columns["keypoints"]
        self.positions = columns["positions"]
        on_table = (np.abs(self.positions) < TABLE_M).all(axis=(1, 2))
        in_view = (np.abs(self.keypoints[:, 1:3]) < VIEW).all(axis=2)
        self.other_usable = in_view[:, 1]
        usable = on_table & in_view[:, 0]
        self.following = _following(columns["episode"], columns["step"], horizon)
        held_out = columns["episode"] % HELD_OUT_EVERY == 0
        self.train = np.flatnonzero(usable & ~held_out)
        self.validation = np.flatnonzero(usable & held_out)
        if not len(self.validation):
            self.validation = self.train

    def __len__(self) -> int:
        return len(self.image)

    @classmethod
    def load(cls, files: Iterable[Path], *, horizon: int = 1) -> Demonstrations:
        """Read shards.

        Raises:
            FileNotFoundError: if there is none.
        """
        shards = []
        for path in files:
            with np.load(path, allow_pickle=False) as shard:
                shards.append({key: shard[key] for key in shard.files if key != "allow_pickle"})
        if not shards:
            msg = "no demonstrations; record some with python -m policies.learn.collect"
            raise FileNotFoundError(msg)
        keys = list(shards[0])
        joined = {key: np.concatenate([s.pop(key) for s in shards]) for key in keys}
        return cls(joined, horizon=horizon)

    def batch(self, rows: NDArray[np.int64], rng: np.random.Generator, *, augment: bool) -> Batch:
        """Samples of the given frames, each for one of its two instructions by chance."""
        other = ((rng.random(len(rows)) < OTHER_SHARE) & self.other_usable[rows]).astype(np.int64)
        image, keypoints = self.image[rows], self.keypoints[rows]
        positions = self.positions[rows]
        order = np.where(other[:, None] == 1, [[0, 2, 1, 3]], [[0, 1, 2, 3]])[..., None]
        keypoints = np.take_along_axis(keypoints, order, axis=1)
        if augment:
            image, moved = shifted(image, rng)
            keypoints = keypoints + moved[:, None, :]
        ahead = self.following[rows]
        known = (ahead >= 0) & ((other == 0)[:, None] | (np.arange(self.horizon) == 0))
        return Batch(
            rows=rows,
            other=other,
            image=image,
            chunk=self.action[np.where(ahead < 0, rows[:, None], ahead), other[:, None]],
            known=known,
            prompt=self.prompt[rows, other],
            keypoints=keypoints,
            positions=np.take_along_axis(positions, order, axis=1),
        )


def shards(given: Iterable[Path]) -> list[Path]:
    """Files of demonstrations, those of folders in the order of their names; none half written."""
    files = [f for p in given for f in (sorted(p.glob("*.npz")) if p.is_dir() else [p])]
    return [f for f in files if ".partial" not in f.name]


def _following(
    episode: NDArray[np.int32], step: NDArray[np.int32], horizon: int
) -> NDArray[np.int64]:
    """Row of each of the next frames of the same episode, -1 beyond its end, ``(n, horizon)``."""
    rows = np.arange(len(episode))[:, None] + np.arange(horizon)
    there = np.minimum(rows, len(episode) - 1)
    same = (episode[there] == episode[:, None]) & (
        step[there] - step[:, None] == rows - rows[:, :1]
    )
    return np.where(same & (rows < len(episode)), rows, -1)


def shifted(
    image: NDArray[np.uint8], rng: np.random.Generator
) -> tuple[NDArray[np.uint8], FloatArray]:
    """Move every image by a few pixels; returns also the motion in units of [-1, 1]."""
    side = image.shape[1]
    edge = ((0, 0), (SHIFT_PX, SHIFT_PX), (SHIFT_PX, SHIFT_PX), (0, 0))
    padded = np.pad(image, edge, mode="edge")
    # Mostly small: a triangular draw.
    offsets = (rng.integers(0, SHIFT_PX + 1, (2, len(image), 2))).sum(axis=0)
    out = np.empty_like(image)
    for i, (dy, dx) in enumerate(offsets):
        out[i] = padded[i, dy : dy + side, dx : dx + side]
    moved = (SHIFT_PX - offsets[:, ::-1]) * (2.0 / side)
    return out, moved.astype(np.float32)


def action_statistics(action: FloatArray) -> dict[str, Any]:
    """Statistics in the format of ``norm_stats[...]["action"]`` for actions ``(n, 7)``.

    The gripper passes unscaled; a rotation that hardly varies is not blown up to the full range.
    """
    flat = action.reshape(-1, action.shape[-1]).astype(np.float64)
    q01, q99 = np.quantile(flat, 0.01, axis=0), np.quantile(flat, 0.99, axis=0)
    middle, half = (q01 + q99) / 2.0, (q99 - q01) / 2.0
    half[3:6] = np.maximum(half[3:6], MIN_ROTATION_RANGE_RAD / 2.0)
    return {
        "q01": (middle - half).tolist(),
        "q99": (middle + half).tolist(),
        "mask": [True] * 6 + [False],
        "mean": flat.mean(axis=0).tolist(),
        "std": flat.std(axis=0).tolist(),
        "min": flat.min(axis=0).tolist(),
        "max": flat.max(axis=0).tolist(),
    }


def soft_targets(normalized: ArrayLike, sigma_bins: float, n_bins: int = 256) -> FloatArray:
    """Target distribution over action ids, lowest id first, shape ``(..., n_bins)``.

    A Gaussian around the exact action, so that a near bin is a small error. Ids fall while actions
    rise, and the lowest id is an edge without a bin.

    >>> soft_targets(np.array([0.0]), 1.0).argmax(axis=-1).tolist()
    [128]
    """
    center = (np.asarray(normalized)[..., None] + 1.0) / 2.0 * (n_bins - 1) - 0.5
    bins = n_bins - 1 - np.arange(n_bins)
    z = (bins - np.clip(center, 0.0, n_bins - 2)) / sigma_bins
    weight = np.exp(-0.5 * z**2)
    weight[..., 0] = 0.0
    out: FloatArray = (weight / weight.sum(axis=-1, keepdims=True)).astype(np.float32)
    return out
