"""Failure-detection AUROC of a score, controlled for episode length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from monitor.records import FloatArray

__all__ = ["PREFIXES", "Auroc", "auroc", "bootstrap_auroc", "peak_of_means", "prefix_peak"]

PREFIXES: Final = (10, 20, 40)
"""Failures run to the horizon, so a whole episode leaks its label; equal first steps do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Auroc:
    """Area under the ROC curve with its bootstrap interval.

    Attributes:
        value: probability that a failure scores above a success, ties half; 0.5 is chance.
        low: lower end of the 95 % percentile interval.
        high: upper end.
        n_success: episodes without failure.
        n_failure: episodes with.
    """

    value: float
    low: float
    high: float
    n_success: int
    n_failure: int

    def to_json(self) -> dict[str, float | int]:
        """Return it as it stands in ``summary.json``."""
        return {
            "auroc": self.value,
            "low": self.low,
            "high": self.high,
            "n_success": self.n_success,
            "n_failure": self.n_failure,
        }

    def to_text(self) -> str:
        """Return it as text for people."""
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def auroc(successes: ArrayLike, failures: ArrayLike) -> float | None:
    """Area under the ROC curve by ranks (Hanley & McNeil 1982); None where a class is empty.

    >>> auroc([0.1, 0.4], [0.35, 0.8])
    0.75
    """
    good, bad = np.sort(np.ravel(np.asarray(successes))), np.ravel(np.asarray(failures))
    if good.size == 0 or bad.size == 0:
        return None
    below = np.searchsorted(good, bad, side="left")
    upto = np.searchsorted(good, bad, side="right")
    return float((below + upto).sum() / (2 * good.size * bad.size))


def bootstrap_auroc(
    successes: Sequence[float],
    failures: Sequence[float],
    *,
    seed: int = 0,
    draws: int = 1000,
    confidence: float = 0.95,
) -> Auroc | None:
    """AUROC with a percentile interval, episodes drawn again within each class.

    Args:
        successes: one score an episode.
        failures: one score an episode.
        seed: seed of the draws.
        draws: how many.
        confidence: confidence level of the interval.
    """
    value = auroc(successes, failures)
    if value is None:
        return None
    rng = np.random.default_rng(seed)
    good, bad = np.asarray(successes, dtype=np.float64), np.asarray(failures, dtype=np.float64)
    drawn = [
        auroc(
            good[rng.integers(good.size, size=good.size)],
            bad[rng.integers(bad.size, size=bad.size)],
        )
        for _ in range(draws)
    ]
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.asarray(drawn, dtype=np.float64), [tail, 1 - tail])
    return Auroc(
        value=value, low=float(low), high=float(high), n_success=good.size, n_failure=bad.size
    )


def prefix_peak(scores: Sequence[float | None], steps: int | None = None) -> float | None:
    """Return the largest known score of the first ``steps`` steps; None while nothing was known.

    >>> prefix_peak([None, 0.2, 0.9], steps=2)
    0.2
    """
    known = [score for score in scores[:steps] if score is not None]
    return max(known, default=None)


def peak_of_means(values: Sequence[float | None], window: int = 8) -> float | None:
    """Largest mean over a sliding window ("Shifting Uncertainty to Critical Moments" 2026).

    A window counts only where all of it is known.

    >>> peak_of_means([None, 0.0, 1.0, 3.0, 0.0], window=2)
    2.0
    """
    array: FloatArray = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    if array.size < window:
        return None
    means = np.lib.stride_tricks.sliding_window_view(array, window).mean(axis=1)
    known = means[np.isfinite(means)]
    return float(known.max()) if known.size else None
