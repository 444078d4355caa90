"""Uncertainty signals of a flow policy, in addition to its action chunk."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from monitor.errors import ConfigError
from monitor.metrics.token_uncertainty import TOKEN_METRICS
from monitor.reading.logits import token_metrics
from policies.base import FloatArray

__all__ = [
    "check_head",
    "expert_logits",
    "expert_scores",
    "plan_overlap",
    "plan_spread",
    "velocity_change",
]


def velocity_change(velocities: FloatArray) -> float | None:
    """How much the velocity field turned between the last two steps, in [0, 1].

    A straight flow, whose steps all agree, gives 0; opposite velocities give 1. One Euler step
    has nothing to compare and gives None.

    Args:
        velocities: velocities of the last two steps, ``(2, B, H, D)``; of one, ``(1, B, H, D)``.

    >>> velocity_change(np.array([[[[3.0]]], [[[1.0]]]]))
    0.5
    """
    if len(velocities) < 2:
        return None
    before, now = (one.reshape(len(one), -1) for one in velocities[-2:])
    with np.errstate(invalid="ignore"):  # what is not finite stays so, for the monitor to see
        change = np.linalg.norm(now - before, axis=1)
        size = np.linalg.norm(now, axis=1) + np.linalg.norm(before, axis=1)
        return float(np.mean(change / np.where(size > 0.0, size, 1.0)))


def plan_spread(plans: FloatArray) -> float | None:
    """Standard deviation over draws of whole normalised plans, mean over steps and dimensions.

    Args:
        plans: ``(B, H, D)``; in units of the data's own spread where the checkpoint scales by it.

    >>> plan_spread(np.array([[[0.0]], [[1.0]]]))
    0.5
    """
    with np.errstate(invalid="ignore"):
        return None if len(plans) < 2 else float(plans.std(axis=0).mean())


def plan_overlap(left: FloatArray | None, plan: FloatArray) -> float | None:
    """Mean distance of a new plan to what was left of the last one, over the steps of both.

    Args:
        left: actions of the last plan that were not done, ``(h, D)``, normalised; None without one.
        plan: ``(H, D)``, beginning at the same step.

    >>> plan_overlap(np.array([[1.0], [2.0]]), np.array([[1.5], [2.0], [9.0]]))
    0.25
    """
    count = 0 if left is None else min(len(left), len(plan))
    if left is None or count == 0:
        return None
    with np.errstate(invalid="ignore"):
        return float(np.abs(left[:count] - plan[:count]).mean())


def check_head(head: Tensor) -> None:
    """Refuse a language head that cannot say anything.

    Nothing in π0's training touches this head, and openpi's converter fills it with zeros; every
    token metric of such a head is 1 for ever.

    Raises:
        ConfigError: if all of it is zero.
    """
    if not bool(head.any()):
        msg = (
            "expert_scores=True needs the action expert's language head, and in this checkpoint "
            "(gemma_expert.lm_head.weight) it is all zero: every score would be 1. Leave "
            "expert_scores out; the samples' spread and the velocity change say more"
        )
        raise ConfigError(msg)


@torch.no_grad()
def expert_logits(head: Tensor, hidden: Tensor) -> Tensor:
    """The replication code's ``expert_scores``: logits of the expert's tokens at the last step.

    Source: Valle et al., arXiv 2507.17049, public code ``pablovalle/VLA_UQ``.

    Args:
        head: language head of the expert, ``(V, width)``.
        hidden: expert's output after its final norm for state and actions, ``(1 + H, width)``.

    Returns:
        Shape ``(1 + H, V)`` float32; row 0 belongs to the state.
    """
    return (hidden.to(head.dtype) @ head.T).float()


def expert_scores(logits: Tensor) -> Mapping[str, float | None]:
    """The four token metrics of :func:`expert_logits`, mean over rows, by metric id."""
    found = token_metrics(logits)
    return {f"PI0-{name}": found[name] for name in TOKEN_METRICS}
