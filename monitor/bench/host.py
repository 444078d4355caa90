"""Benchmark of an environment in a separate process."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np

from envs.host.blank import BlankEnv
from envs.host.hosted import HostedEnv
from monitor.bench.overhead import Timing, time_calls

__all__ = ["host_table"]


def host_table(
    image_size: tuple[int, int] = (480, 640), *, calls: int = 1000, python: str | None = None
) -> list[Timing]:
    """Time a step of an environment that only renders, in this process and in another one.

    Args:
        image_size: height and width of the image, pixels.
        calls: number of timed steps of each.
        python: interpreter of the other process; None for this one.
    """
    height, width = image_size
    inside = BlankEnv(image_size=image_size)
    kwargs = {"image_size": image_size}
    with closing(HostedEnv("envs.host.blank:BlankEnv", kwargs, python=python)) as hosted:
        return [
            _time_steps(f"step at {width}×{height}, in process", inside, calls),
            _time_steps(f"step at {width}×{height}, in another process", hosted, calls),
        ]


def _time_steps(what: str, env: Any, calls: int) -> Timing:
    action = np.zeros(7)
    return time_calls(what, lambda _: env.step(action), calls=calls, each=env.reset)
