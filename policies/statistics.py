"""Statistics of the actions of a dataset: from what a model says to the robot's units and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import ConfigError, unknown_name
from policies.base import FloatArray

__all__ = ["ActionStatistics", "statistics_for", "translation_limits"]

ROUNDING: Final = 1.001
"""A value that lies on its quantile must not be beyond it by half precision."""
LEAST_M: Final = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActionStatistics:
    """Quantiles that map normalised actions to the robot's units.

    Attributes:
        q01: 1% quantile per dimension, shape ``(D,)``.
        q99: 99% quantile per dimension, shape ``(D,)``.
        mask: dimensions that are normalised; the others pass unchanged, shape ``(D,)``.
        key: dataset that they are of, ``unnorm_key``; None if unknown.
    """

    q01: FloatArray
    q99: FloatArray
    mask: NDArray[np.bool_]
    key: str | None = None

    @classmethod
    def from_json(cls, action: Mapping[str, Any]) -> ActionStatistics:
        """Read the ``action`` entry of a dataset; without ``mask`` every dimension is normalised.

        Raises:
            ConfigError: if an array is missing, not finite, or not as long as the others.
        """
        q01, q99 = _quantiles(action, "q01"), _quantiles(action, "q99")
        mask = np.asarray(action.get("mask", np.ones(q01.shape)), dtype=bool)
        if not q01.shape == q99.shape == mask.shape:
            msg = (
                "statistics need as many numbers each, got "
                f"q01 {q01.shape}, q99 {q99.shape} and mask {mask.shape}"
            )
            raise ConfigError(msg)
        if (q01 > q99).any():
            msg = f"statistics have q01 above q99 in {np.flatnonzero(q01 > q99).tolist()}"
            raise ConfigError(msg)
        return cls(q01=q01, q99=q99, mask=mask)

    def translation_q99_m(self, scale: float = 1.0) -> tuple[float, ...] | None:
        """Largest usual value of the first three dimensions; None where there are fewer.

        Args:
            scale: factor on what :meth:`unnormalize` gives.
        """
        if len(self.q01) < 3:
            return None
        return translation_limits(
            np.where(self.mask, np.maximum(abs(self.q01), abs(self.q99)), 1.0), scale
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


def translation_limits(largest: FloatArray, scale: float = 1.0) -> tuple[float, ...]:
    """Limits of a translation out of the largest usual value per dimension.

    A dimension that never moves in the data gets a limit of a tenth of a millimetre.
    """
    limits = np.maximum(largest[:3] * abs(scale) * ROUNDING, LEAST_M)
    return tuple(limits.tolist())


def statistics_for(norm_stats: Mapping[str, Any], key: str | None) -> ActionStatistics:
    """Statistics of dataset ``key``; a single dataset needs no key.

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
            msg = f"several datasets in norm_stats; pass unnorm_key=, one of {sorted(norm_stats)}"
            raise ConfigError(msg)
        key = next(iter(norm_stats))
    if key not in norm_stats:
        raise ConfigError(unknown_name("unnorm_key", key, norm_stats))
    entry = norm_stats[key]
    action = entry.get("action") if isinstance(entry, Mapping) else None
    if not isinstance(action, Mapping):
        msg = f"the statistics of {key!r} have no 'action' with q01 and q99"
        raise ConfigError(msg)
    return replace(ActionStatistics.from_json(action), key=key)


def _quantiles(action: Mapping[str, Any], name: str) -> FloatArray:
    try:
        values = np.asarray(action.get(name), dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"{name} of the statistics is {action.get(name)!r}, expected a list of numbers"
        raise ConfigError(msg) from error
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        msg = f"{name} of the statistics is {action.get(name)!r}, expected a list of finite numbers"
        raise ConfigError(msg)
    return values
