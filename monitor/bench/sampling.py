"""What sampled actions cost beside the action itself: one prefill for all, or as many inferences."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from monitor.errors import ConfigError
from policies import Observation, load_policy

__all__ = ["SamplingRow", "measure_sampling", "reckon_openvla_7b"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingRow:
    """One way to get an action and K samples.

    Attributes:
        what: the way.
        value: its cost.
        share: of the cost of K + 1 whole inferences.
    """

    what: str
    value: float
    share: float


def measure_sampling(
    policy: str, *, samples: int, calls: int = 50, **options: Any
) -> tuple[SamplingRow, ...]:
    """Time a policy without and with samples, alternating, on a made-up picture.

    Args:
        policy: name; it must take ``samples=``.
        samples: K, at least 1.
        calls: of each; the median is kept.
        **options: of the policy, such as ``checkpoint``.

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


def reckon_openvla_7b(*, samples: int) -> dict[str, tuple[SamplingRow, ...]]:
    """The same for openvla-7b in bfloat16, from its sizes alone.

    Returns:
        Rows as of :func:`measure_sampling` by unit: ``TFLOP`` of the matrix products, and ``GB``
        that pass between memory and processor.
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
