"""Fit the network of the probe with torch (extra ``vla``), as published but for what is said here.

Loss (Gu et al., section 4.2): with s_t = sum of sigmoid(g(e)) up to t, a failed rollout pays
t - s_t and a successful one s_t, mean over the steps of a rollout, then over rollouts with each
outcome weighing the same. Deviations from the public code (``vla-safe/SAFE``, ``indep.py``):
features are standardised on the training steps, which is folded into the first layer afterwards;
the penalty on the weights is one value of those that the authors swept; fewer epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.errors import MissingExtraError
from monitor.records import FloatArray
from monitor.study.safe.data import Labelled

__all__ = ["Network", "Training", "train"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Settings.

    Attributes:
        units: hidden units, 256 as published.
        epochs: passes over all rollouts in one batch; 1000 as published.
        lr: learning rate of Adam, as published.
        penalty: L2 penalty; the authors swept 1e-3 to 1.
        seed: seed of split and weights.
    """

    units: int = 256
    epochs: int = 300
    lr: float = 1e-3
    penalty: float = 1e-2
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """Two layers on raw features: ``(H, F)``, ``(H,)``, ``(H,)``, ``()`` float32."""

    weight_1: NDArray[np.float32]
    bias_1: NDArray[np.float32]
    weight_2: NDArray[np.float32]
    bias_2: NDArray[np.float32]


def train(episodes: Sequence[Labelled], training: Training) -> Network:
    """Fit the network; the same episodes and settings give the same one on the same machine.

    Args:
        episodes: episodes of both outcomes.
        training: settings.

    Raises:
        MissingExtraError: torch is not installed.
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        msg = "torch is not installed; run: pip install 'vlawatch[vla]'"
        raise MissingExtraError(msg) from error
    rows = np.concatenate([one.features for one in episodes]).astype(np.float64)
    mean, std = rows.mean(axis=0), _floored(rows.std(axis=0))
    longest, size = max(len(one.features) for one in episodes), rows.shape[1]
    inputs = np.zeros((len(episodes), longest, size), dtype=np.float32)
    valid = np.zeros((len(episodes), longest), dtype=np.float32)
    for i, one in enumerate(episodes):
        inputs[i, : len(one.features)] = (one.features - mean) / std
        valid[i, : len(one.features)] = 1.0
    failed = torch.tensor([one.failed for one in episodes])
    x, mask = torch.from_numpy(inputs), torch.from_numpy(valid)
    share = mask / mask.sum(dim=1, keepdim=True)
    weight = torch.where(failed, 0.5 / failed.sum(), 0.5 / (~failed).sum())
    age = torch.arange(1, longest + 1)

    rng = np.random.default_rng(training.seed)
    first, second = size**-0.5, training.units**-0.5
    shapes = ((training.units, size), (training.units,), (training.units,), ())
    bounds = (first, first, second, second)  # as torch initialises its linear layers
    w1, b1, w2, b2 = parameters = [
        torch.tensor(rng.uniform(-bound, bound, shape), dtype=torch.float32, requires_grad=True)
        for shape, bound in zip(shapes, bounds, strict=True)
    ]
    optimizer = torch.optim.Adam(parameters, lr=training.lr)
    for _ in range(training.epochs):
        likelihood = torch.sigmoid(torch.relu(x @ w1.T + b1) @ w2 + b2)
        score = torch.cumsum(likelihood, dim=1)
        paid = torch.where(failed[:, None], age - score, score)
        loss = (weight * (paid * share).sum(dim=1)).sum()
        loss = loss + training.penalty * ((w1**2).sum() + (w2**2).sum())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    a, b, c, d = (one.detach().numpy().astype(np.float64) for one in parameters)
    folded = a / std
    arrays = [one.astype(np.float32) for one in (folded, b - folded @ mean, c, np.asarray(d))]
    return Network(weight_1=arrays[0], bias_1=arrays[1], weight_2=arrays[2], bias_2=arrays[3])


def _floored(std: FloatArray) -> FloatArray:
    """A feature that never moved must not be blown up when it first does."""
    floor = 1e-3 * float(std.max())
    return np.maximum(std, floor if floor > 0 else 1.0)
