"""What the trainer minimises: action tokens, points in the picture, positions in space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from monitor.errors import MonitorError
from policies.learn.dataset import Batch
from policies.openvla.grounded import VisualTokens, cell_centers

__all__ = ["LossWeights", "Losses", "UnsupervisedTowerError", "batch_losses", "relit"]


class UnsupervisedTowerError(MonitorError, TypeError):
    """The model's tower finds no points, so that there is nothing to supervise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossWeights:
    """Weights beside that of the action tokens, which is 1.

    Attributes:
        keypoint: of the pixels of tool, objects and target.
        heat: of the cross entropy of their maps; without it a point hovers between two objects.
        position: of their positions in units of 0.1 m.
    """

    keypoint: float = 5.0
    heat: float = 0.2
    position: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Losses:
    """Loss of one batch.

    Attributes:
        total: what is minimised.
        token: Kullback-Leibler divergence per action dimension, nats, shape ``(7,)``.
        pixel: mean error of tool, named object, other object and target, pixels, ``(4,)``.
    """

    total: Tensor
    token: Tensor
    pixel: Tensor


def batch_losses(
    batch: Batch, logits: Tensor, target: Tensor, visual: VisualTokens, weights: LossWeights
) -> Losses:
    """Loss of one batch.

    Args:
        batch: the samples.
        logits: of the action ids alone, normalised over the whole vocabulary, ``(B, 7, bins)``.
        target: soft labels, ``(B, 7, bins)``.
        visual: what the tower found.
        weights: of the parts.
    """
    if visual.positions is None:
        msg = "this model's tower finds no points; train it with the grounded-conv tower"
        raise UnsupervisedTowerError(msg)
    entropy = -torch.special.xlogy(target, target).sum(-1)
    token = (-(target * logits).sum(-1) - entropy).mean(dim=0)
    points, heat, pixel = _point_losses(batch, visual)
    true = torch.from_numpy(batch.positions)
    position = F.smooth_l1_loss(visual.positions.float() * 10.0, true * 10.0)
    total = (
        token.mean() + weights.keypoint * points + weights.heat * heat + weights.position * position
    )
    return Losses(total=total, token=token.detach(), pixel=pixel)


def _point_losses(batch: Batch, visual: VisualTokens) -> tuple[Tensor, Tensor, Tensor]:
    """Of tool and target without words, then of named object, other object, target with them."""
    assert visual.keypoints is not None
    assert visual.grounded is not None
    assert visual.heat is not None
    side = batch.image.shape[1]
    found = torch.cat([visual.keypoints[:, :2], visual.grounded[:, :3]], dim=1).float()
    true = torch.from_numpy(batch.keypoints)[:, [0, 3, 1, 2, 3]]
    in_view = (true.abs() <= 1.0).all(dim=-1).float()
    share = in_view / in_view.sum().clamp(min=1.0)
    smooth = F.smooth_l1_loss(found, true, reduction="none", beta=0.05).sum(dim=-1)

    cells = cell_centers(side // 4)
    square = (true[:, :, None, :] - cells).square().sum(dim=-1)
    cell_width = 8.0 / side
    place = torch.softmax(-0.5 * square / cell_width**2, dim=-1)
    cross = -(place * visual.heat[:, :5].float()).sum(dim=-1)

    error = (found - true).detach().norm(dim=-1) * in_view * (side / 2.0)
    per_point = error.sum(dim=0) / in_view.sum(dim=0).clamp(min=1.0)
    return (smooth * share).sum(), (cross * share).sum(), per_point[[0, 2, 3, 4]]


def relit(pixels: Tensor, rng: np.random.Generator) -> Tensor:
    """Change contrast, brightness and tint of every picture, ``(B, 3, S, S)`` in [-1, 1]."""
    draw = torch.from_numpy(rng.uniform(-1.0, 1.0, (len(pixels), 5)).astype(np.float32))
    gain = 1.0 + 0.25 * draw[:, 0, None, None, None]
    offset = 0.2 * draw[:, 1, None, None, None] + 0.05 * draw[:, 2:, None, None]
    mean = pixels.mean(dim=(1, 2, 3), keepdim=True)
    return ((pixels - mean) * gain + mean + offset).clamp(-1.0, 1.0)
