"""What further samples and plans say: EV over samples, CHUNK over consecutive plans (spec 6, 17)."""

from __future__ import annotations

import numpy as np

from monitor.records import FloatArray


def normalise(actions: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return actions, ``(..., D)``, on [0, 1] of their space; clipped first, so never overflowing."""
    span = np.where(high > low, high - low, 1.0)
    scaled: FloatArray = (np.minimum(np.maximum(actions, low), high) - low) / span
    return scaled


def execution_variability(samples: FloatArray) -> float | None:
    """Return EV of Valle et al.: population standard deviation, mean over dimensions.

    Args:
        samples: ``(K, D)`` normalised actions for one observation.

    Returns:
        None where it says nothing: with less than two samples, or with samples equal to the last
        bit, which is what a deterministic policy gives for ever.

    >>> execution_variability(np.array([[0.0], [1.0]]))
    0.5
    """
    if len(samples) < 2 or bool((samples == samples[0]).all()):
        return None
    return float(samples.std(axis=0).mean())


def chunk_inconsistency(last: FloatArray, now: FloatArray) -> float | None:
    """Return the mean distance of two consecutive plans where they overlap.

    Args:
        last: ``(H, D)`` normalised plan of the step before.
        now: ``(H', D)`` normalised plan of this step, which begins one action later.

    >>> chunk_inconsistency(np.array([[0.0], [0.2], [0.4]]), np.array([[0.2], [0.5]]))
    0.04999999999999999
    """
    count = min(len(last) - 1, len(now))
    if count < 1:
        return None
    return float(np.abs(last[1 : count + 1] - now[:count]).mean())
