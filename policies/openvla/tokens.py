"""Actions as tokens: 256 uniform bins on the last ids of the vocabulary, as OpenVLA defines them.

Source: Kim et al. 2024, "OpenVLA", section 3.2, and the action tokenizer of its public code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import ConfigError, unknown_name

__all__ = ["ActionStatistics", "bin_centers", "decode_ids", "encode_actions", "statistics_for"]

FloatArray = NDArray[np.float64]


def bin_centers(n_bins: int = 256) -> FloatArray:
    """Centres between ``n_bins`` edges on [-1, 1], shape ``(n_bins - 1,)``.

    >>> bin_centers()[[0, -1]].round(4).tolist()
    [-0.9961, 0.9961]
    """
    edges = np.linspace(-1.0, 1.0, n_bins)
    return (edges[:-1] + edges[1:]) / 2.0


def decode_ids(ids: ArrayLike, token_base: int, n_bins: int = 256) -> FloatArray:
    """Normalised actions of token ids, same shape, in (-1, 1).

    Ids outside the action range clip to an end, as upstream does; a monitor must look at the ids.

    Args:
        ids: token ids.
        token_base: vocabulary size without padding, 32000 for OpenVLA.
        n_bins: number of bin edges.

    >>> decode_ids([31999, 31744, 5], 32000).round(4).tolist()
    [-0.9961, 0.9961, 0.9961]
    """
    bins = token_base - np.asarray(ids, dtype=np.int64) - 1
    return bin_centers(n_bins)[np.clip(bins, 0, n_bins - 2)]


def encode_actions(actions: ArrayLike, token_base: int, n_bins: int = 256) -> NDArray[np.int64]:
    """Token ids of normalised actions, same shape.

    >>> encode_actions([-1.0, 0.0, 1.0], 32000).tolist()
    [31999, 31872, 31744]
    """
    clipped = np.clip(np.asarray(actions, dtype=np.float64), -1.0, 1.0)
    number = np.digitize(clipped, np.linspace(-1.0, 1.0, n_bins))
    return token_base - np.asarray(number, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActionStatistics:
    """Quantiles that map normalised actions to the robot's units.

    Attributes:
        q01: 1% quantile per dimension, shape ``(D,)``.
        q99: 99% quantile per dimension, shape ``(D,)``.
        mask: dimensions that are normalised; the others pass unchanged, shape ``(D,)``.
    """

    q01: FloatArray
    q99: FloatArray
    mask: NDArray[np.bool_]

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
        msg = "the checkpoint has no norm_stats; add dataset_statistics.json to its folder"
        raise ConfigError(msg)
    if key is None:
        if len(norm_stats) > 1:
            msg = f"several data sets in norm_stats; pass unnorm_key=, one of {sorted(norm_stats)}"
            raise ConfigError(msg)
        key = next(iter(norm_stats))
    if key not in norm_stats:
        raise ConfigError(unknown_name("unnorm_key", key, norm_stats))
    return ActionStatistics.from_json(norm_stats[key]["action"])
