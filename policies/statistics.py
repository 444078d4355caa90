"""Statistics of the actions of a data set: from what a model says to the robot's units and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import ConfigError, unknown_name

__all__ = ["ActionStatistics", "statistics_for"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActionStatistics:
    """Quantiles that map normalised actions to the robot's units.

    Attributes:
        q01: 1% quantile per dimension, shape ``(D,)``.
        q99: 99% quantile per dimension, shape ``(D,)``.
        mask: dimensions that are normalised; the others pass unchanged, shape ``(D,)``.
        key: data set that they are of, ``unnorm_key``; None where nobody says.
    """

    q01: FloatArray
    q99: FloatArray
    mask: NDArray[np.bool_]
    key: str | None = None

    @classmethod
    def from_json(cls, action: Mapping[str, Any]) -> ActionStatistics:
        """Read the ``action`` entry of a data set; without ``mask`` every dimension is normalised."""
        q01 = np.asarray(action["q01"], dtype=np.float64)
        mask = action.get("mask", np.ones(q01.shape, dtype=bool))
        return cls(
            q01=q01,
            q99=np.asarray(action["q99"], dtype=np.float64),
            mask=np.asarray(mask, dtype=bool),
        )

    def unnormalize(self, normalized: ArrayLike) -> FloatArray:
        """Robot units of normalised actions, shape ``(..., D)``."""
        x = np.asarray(normalized, dtype=np.float64)
        return np.where(self.mask, 0.5 * (x + 1.0) * (self.q99 - self.q01) + self.q01, x)

    def normalize(self, actions: ArrayLike) -> FloatArray:
        """Inverse of :meth:`unnormalize`, clipped to [-1, 1], shape ``(..., D)``."""
        a = np.asarray(actions, dtype=np.float64)
        scaled = 2.0 * (a - self.q01) / np.maximum(self.q99 - self.q01, 1e-9) - 1.0
        return np.clip(np.where(self.mask, scaled, a), -1.0, 1.0)


def statistics_for(norm_stats: Mapping[str, Any], key: str | None) -> ActionStatistics:
    """Statistics of data set ``key``; a single data set needs no key.

    Raises:
        ConfigError: if the key is unknown, or missing while there are several; lists the known.
    """
    if not norm_stats:
        msg = (
            "the checkpoint has no statistics of actions; add dataset_statistics.json to its folder"
        )
        raise ConfigError(msg)
    if key is None:
        if len(norm_stats) > 1:
            msg = f"several data sets in norm_stats; pass unnorm_key=, one of {sorted(norm_stats)}"
            raise ConfigError(msg)
        key = next(iter(norm_stats))
    if key not in norm_stats:
        raise ConfigError(unknown_name("unnorm_key", key, norm_stats))
    return replace(ActionStatistics.from_json(norm_stats[key]["action"]), key=key)
