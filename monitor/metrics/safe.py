"""SAFE: a small network on the policy's own features that says how likely the rollout fails.

Gu et al., "SAFE: Multitask Failure Detection for Vision-Language-Action Models", arXiv 2506.09937,
section 4.2, the MLP: each step's features e_t give sigmoid(g(e_t)) with a two-layer g, and the
score is their sum so far, s_t = sum over tau <= t of sigmoid(g(e_tau)). An alarm is s_t above a
band over time that was fitted on successful rollouts (functional conformal prediction, 4.3).

Training is in :mod:`monitor.study.safe`; here is what runs next to a robot, on numpy alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import tanh
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.probe_file import ProbeFile
from monitor.reading.arrays import to_array
from monitor.records import FloatArray, Step
from monitor.stage import MetricInfo

__all__ = ["IDS", "SafeMetric", "failure_curve", "failure_likelihood"]

INFOS: Final = (
    MetricInfo(
        id="SAFE",
        meaning="likelihood of failure by the policy's features, summed over the steps so far;"
        " with ``metrics.safe``",
        high=None,
        needs=("hidden",),
        source="SAFE, Gu et al., arXiv 2506.09937",
    ),
    MetricInfo(
        id="SAFE-excess",
        meaning="SAFE above the conformal band of successful rollouts; above 0 is an alarm",
        low=None,
        high=None,
        needs=("hidden",),
        source="SAFE, Gu et al., arXiv 2506.09937",
    ),
)
IDS: Final = tuple(info.id for info in INFOS)


def failure_likelihood(probe: ProbeFile, hidden: Any) -> float:
    """sigmoid(g(e)) of one step's features, in [0, 1].

    Args:
        probe: the network.
        hidden: ``(F,)`` array or tensor of any float type and device.

    Raises:
        ValueError: the features have another shape than the probe's, or are not finite.
    """
    array = to_array(hidden)
    size = probe.header.features
    if array is None or array.shape != (size,):
        shape = type(hidden).__name__ if array is None else str(array.shape)
        msg = f"hidden is {shape}, the probe was trained on ({size},) of {probe.header.policy}"
        raise ValueError(msg)
    with np.errstate(over="ignore"):
        features = array.astype(np.float32)
    if not np.isfinite(features).all():
        msg = "hidden is not finite"
        raise ValueError(msg)
    inner = np.maximum(probe.weight_1 @ features + probe.bias_1, np.float32(0))
    logit = float(probe.weight_2 @ inner) + float(probe.bias_2)
    return 0.5 * (1.0 + tanh(0.5 * logit))


def failure_curve(probe: ProbeFile, features: NDArray[np.float32]) -> FloatArray:
    """The score after every step of an episode, bit for bit as it runs.

    Args:
        probe: the network.
        features: ``(T, F)`` one row a step, finite.

    Returns:
        ``(T,)``, never falling.
    """
    total, curve = 0.0, np.empty(len(features))
    for t, row in enumerate(features):
        total += failure_likelihood(probe, row)
        curve[t] = total
    return curve


@final
class SafeMetric:
    """``SAFE``, the score, and ``SAFE-excess``, how far it lies above the band.

    A step without features leaves both unknown and does not count: the score after k features is
    compared with the band at k. Beyond the band's end the excess is unknown, because no successful
    rollout of that length was ever seen.
    """

    def __init__(self, probe: ProbeFile) -> None:
        self.ids: tuple[str, ...] = IDS
        self._probe = probe
        self._band: list[float] = probe.band.tolist()
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._total, self._seen = 0.0, 0

    def measure(self, step: Step) -> Mapping[str, float | None]:
        """Take one step in.

        Raises:
            ValueError: the features are not finite or are not this probe's.
        """
        if step.hidden is None:
            return {}
        self._total += failure_likelihood(self._probe, step.hidden)
        at = self._seen
        self._seen += 1
        excess = self._total - self._band[at] if at < len(self._band) else None
        return {"SAFE": self._total, "SAFE-excess": excess}
