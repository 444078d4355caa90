"""Actions as tokens: 256 uniform bins on the last ids of the vocabulary, as OpenVLA defines them.

Source: Kim et al. 2024, "OpenVLA", section 3.2, and the action tokenizer of its public code.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policies.base import FloatArray
from policies.statistics import ActionStatistics, statistics_for

__all__ = ["ActionStatistics", "bin_centers", "decode_ids", "encode_actions", "statistics_for"]


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
