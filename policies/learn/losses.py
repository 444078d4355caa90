"""What the trainer minimises: errors of the action, points in the image, positions in space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from monitor.errors import MonitorError
from policies.learn.dataset import Batch
from policies.openvla.grounded import VisualTokens, cell_centers

__all__ = ["LossWeights", "Losses", "UnsupervisedTowerError", "divergence", "whole_loss"]


class UnsupervisedTowerError(MonitorError, TypeError):
    """The model's tower finds no points, so that there is nothing to supervise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossWeights:
    """Weights relative to that of the action, which is 1.

    Attributes:
        keypoint: weight of the keypoint error of tool, objects and target.
        heat: weight of the cross entropy of their heat maps; without it a point hovers between
            two objects.
        position: weight of the error of their positions, in units of 0.1 m.
    """

    keypoint: float = 5.0
    heat: float = 0.2
    position: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Losses:
    """Loss of one batch.

    Attributes:
        total: what is minimised.
        parts: what the log says of it, by name.
    """

    total: Tensor
    parts: Mapping[str, float]


def divergence(log_p: Tensor, target: Tensor) -> Tensor:
    """Kullback-Leibler divergence of predicted tokens from soft labels, nats.

    Args:
        log_p: log-probabilities of the ids, ``(..., ids)``.
        target: soft labels, the same shape.

    Returns:
        Shape ``(...)``.
    """
    entropy = -torch.special.xlogy(target, target).sum(-1)
    out: Tensor = -(target * log_p).sum(-1) - entropy
    return out


def whole_loss(
    action: Mapping[str, Tensor], batch: Batch, visual: VisualTokens, weights: LossWeights
) -> Losses:
    """Loss of one batch for a model whose tower learns too.

    Args:
        action: parts of the action's loss by name; their mean counts.
        batch: the samples.
        visual: what the tower found.
        weights: weights of the auxiliary losses.
    """
    if visual.positions is None:
        msg = "this model's tower finds no points; train it with the grounded-conv tower"
        raise UnsupervisedTowerError(msg)
    points, heat, pixel = _point_losses(batch, visual)
    true = torch.from_numpy(batch.positions)
    position = F.smooth_l1_loss(visual.positions.float() * 10.0, true * 10.0)
    total = (
        torch.stack(list(action.values())).mean()
        + weights.keypoint * points
        + weights.heat * heat
        + weights.position * position
    )
    found = zip(("tool px", "named px", "other px", "target px"), pixel, strict=True)
    parts = {name: float(one.detach()) for name, one in (*action.items(), *found)}
    return Losses(total=total, parts=parts)


def _point_losses(batch: Batch, visual: VisualTokens) -> tuple[Tensor, Tensor, Tensor]:
    """Return point loss, heat loss and the error per point in pixels."""
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
