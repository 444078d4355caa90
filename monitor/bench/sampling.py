"""Benchmark of sampled actions: one prefill for all samples against separate inferences."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from monitor.errors import ConfigError
from policies import Observation, load_policy

__all__ = ["SamplingRow", "estimate_openvla_7b", "measure_sampling"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingRow:
    """One way to get an action and K samples.

    Attributes:
        what: name of the way.
        value: cost.
        share: cost as a fraction of that of K + 1 whole inferences.
    """

    what: str
    value: float
    share: float


def measure_sampling(
    policy: str, *, samples: int, calls: int = 50, **options: Any
) -> tuple[SamplingRow, ...]:
    """Time a policy without and with samples, alternating, on a synthetic image.

    Args:
        policy: name of a policy that takes ``samples=``.
        samples: number of samples K, at least 1.
        calls: number of calls of each; the median is returned.
        **options: arguments of the policy, such as ``checkpoint``.

    Returns:
        Milliseconds: one inference, one with K samples, K + 1 inferences.

    Raises:
        ConfigError: if the policy offers no samples.
    """
    plain = load_policy(policy, samples=0, **options)
    sampling = load_policy(policy, samples=samples, **options)
    if "samples" not in sampling.signals:
        msg = f"policy {policy!r} offers no samples"
        raise ConfigError(msg)
    instruction = "put the red cube on the plate"
    image = np.random.default_rng(0).integers(0, 256, (96, 96, 3), dtype=np.uint8)
    question = Observation(image=image, instruction=instruction)
    times: dict[str, list[float]] = {"plain": [], "sampling": []}
    for call in range(-3, calls):
        for name, one in (("plain", plain), ("sampling", sampling)):
            one.reset(instruction)
            began = perf_counter()
            one.act(question)
            if call >= 0:  # the first ones warm up
                times[name].append((perf_counter() - began) * 1e3)
    return _rows(median(times["plain"]), median(times["sampling"]), samples)


def estimate_openvla_7b(*, samples: int) -> dict[str, tuple[SamplingRow, ...]]:
    """Estimate the same for openvla-7b in bfloat16 from its sizes.

    Returns:
        Rows as in :func:`measure_sampling` by unit: ``TFLOP`` of the matrix products, and ``GB``
        transferred between memory and processor.
    """
    from policies.openvla.config import OpenVLAConfig
    from policies.openvla.cost import answer_cost
    from policies.openvla.published import OPENVLA_7B

    config = OpenVLAConfig.from_json(OPENVLA_7B)
    one, many = answer_cost(config), answer_cost(config, samples=samples)
    return {
        "TFLOP": _rows(one.flops / 1e12, many.flops / 1e12, samples),
        "GB": _rows(one.traffic_bytes / 1e9, many.traffic_bytes / 1e9, samples),
    }


def _rows(one: float, together: float, samples: int) -> tuple[SamplingRow, ...]:
    apart = (samples + 1) * one
    return (
        SamplingRow(what="the action alone", value=one, share=one / apart),
        SamplingRow(what=f"action and {samples} samples", value=together, share=together / apart),
        SamplingRow(what=f"{samples + 1} whole inferences", value=apart, share=1.0),
    )
