"""One action from the overlapping chunks of a policy that plans several steps at once."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from policies.base import FloatArray

__all__ = ["ActionEnsemble", "EnsembleSpec", "EnsembleWeights", "age_weights", "agreement_weights"]


class EnsembleWeights(str, Enum):
    """What a prediction's share in the action depends on."""

    AGE = "age"
    """How long ago it was made: SimplerEnv's ensemble (Octo, SpatialVLA)."""
    AGREEMENT = "agreement"
    """How well it agrees with the newest one: the adaptive ensemble of CogACT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleSpec:
    """How the predictions for one step become one action.

    Attributes:
        horizon: chunks remembered, at least 1; at most the length of a chunk.
        weights: what a share depends on.
        strength: strength of that dependence, 0 for equal shares. By age, positive favours the
            *older* prediction; by agreement, positive favours the one that agrees.
    """

    horizon: int
    weights: EnsembleWeights = EnsembleWeights.AGE
    strength: float = 0.0


def age_weights(count: int, strength: float) -> FloatArray:
    """Shares of ``count`` predictions, oldest first, shape ``(count,)``; their sum is 1.

    >>> age_weights(2, 0.0).tolist()
    [0.5, 0.5]
    >>> age_weights(2, -0.8).round(3).tolist()
    [0.31, 0.69]
    """
    raw = np.exp(-strength * np.arange(count))
    return np.asarray(raw / raw.sum(), dtype=np.float64)


def agreement_weights(predictions: FloatArray, strength: float) -> FloatArray:
    """Shares by the cosine between each prediction and the newest, shape ``(n,)``.

    Args:
        predictions: for one step, oldest first, shape ``(n, D)``.
        strength: exponent per unit of cosine.

    Source: Li et al. 2024, "CogACT", section 3.4.

    >>> agreement_weights(np.array([[-1.0, 0.0], [1.0, 0.0]]), 0.0).tolist()
    [0.5, 0.5]
    """
    newest = predictions[-1]
    lengths = np.linalg.norm(predictions, axis=1) * np.linalg.norm(newest)
    raw = np.exp(strength * (predictions @ newest) / (lengths + 1e-7))
    return np.asarray(raw / raw.sum(), dtype=np.float64)


@final
class ActionEnsemble:
    """The last chunks of an episode; each still has something to say about the present step."""

    def __init__(self, spec: EnsembleSpec) -> None:
        if spec.horizon < 1:
            msg = f"horizon must be at least 1, got {spec.horizon}"
            raise ValueError(msg)
        self.spec = spec
        self._chunks: deque[FloatArray] = deque(maxlen=spec.horizon)

    def reset(self) -> None:
        """Forget the episode."""
        self._chunks.clear()

    def update(self, chunk: ArrayLike) -> FloatArray:
        """Take the chunk planned now and say what all chunks together want now.

        Args:
            chunk: shape ``(H, D)`` with ``H`` at least the horizon.

        Returns:
            Shape ``(D,)``.

        Raises:
            ValueError: if the chunk is shorter than the horizon.
        """
        newest = np.array(chunk, dtype=np.float64)
        if newest.ndim != 2 or len(newest) < self.spec.horizon:
            msg = (
                f"chunk has shape {newest.shape}; an ensemble over {self.spec.horizon} chunks "
                f"takes ({self.spec.horizon} or more, D)"
            )
            raise ValueError(msg)
        self._chunks.append(newest)
        count = len(self._chunks)
        ages = range(count - 1, -1, -1)
        now = np.stack([made[age] for age, made in zip(ages, self._chunks, strict=True)])
        if self.spec.weights is EnsembleWeights.AGE:
            share = age_weights(count, self.spec.strength)
        else:
            share = agreement_weights(now, self.spec.strength)
        return np.asarray(share @ now, dtype=np.float64)
