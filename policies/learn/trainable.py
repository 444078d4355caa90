"""The interface of a model in training: losses, predictions, and a checkpoint to write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from policies.learn.dataset import Batch, FloatArray
from policies.learn.losses import Losses

__all__ = ["Trainable", "given_pixels", "relit"]


class Trainable(Protocol):
    """One architecture in training."""

    @property
    def model(self) -> nn.Module:
        """What is taught."""
        ...

    def groups(self) -> list[dict[str, Any]]:
        """What the optimiser changes, in its own form."""
        ...

    def losses(
        self, batch: Batch, rng: np.random.Generator, *, progress: float, augment: bool
    ) -> Losses:
        """Loss of one batch under the present weights.

        Args:
            batch: the samples.
            rng: random generator of what the loss draws.
            progress: share of the training that is over; labels may sharpen with it.
            augment: change the light of the images.
        """
        ...

    def predict(self, batch: Batch) -> FloatArray:
        """First actions for a batch, in the environment's units, ``(B, 7)``."""
        ...

    def save(self, folder: Path, weights: Mapping[str, Tensor]) -> None:
        """Write a checkpoint of these weights, which ``load_policy`` takes."""
        ...


def given_pixels(batch: Batch, rng: np.random.Generator | None) -> Tensor:
    """Pixels of a batch in [-1, 1], ``(B, 3, S, S)``; relit where there is a source of chance."""
    pixels = torch.from_numpy(batch.image).permute(0, 3, 1, 2).float() / 127.5 - 1.0
    return pixels if rng is None else relit(pixels, rng)


def relit(pixels: Tensor, rng: np.random.Generator) -> Tensor:
    """Change contrast, brightness and tint of every image, ``(B, 3, S, S)`` in [-1, 1]."""
    draw = torch.from_numpy(rng.uniform(-1.0, 1.0, (len(pixels), 5)).astype(np.float32))
    gain = 1.0 + 0.25 * draw[:, 0, None, None, None]
    offset = 0.2 * draw[:, 1, None, None, None] + 0.05 * draw[:, 2:, None, None]
    mean = pixels.mean(dim=(1, 2, 3), keepdim=True)
    return ((pixels - mean) * gain + mean + offset).clamp(-1.0, 1.0)
