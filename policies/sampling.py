"""The chance in sampled actions: fixed by seed and step alone, the same on every device."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from monitor.errors import ConfigError

__all__ = ["check_sampling", "gumbel_noise", "normal_noise"]


def check_sampling(samples: int, temperature: float = 0.0, seed: int = 0) -> None:
    """Refuse options that say nothing.

    Raises:
        ConfigError: if one of them is negative or no number.
    """
    for name, value, kind in (
        ("samples", samples, Integral),
        ("temperature", temperature, Real),
        ("seed", seed, Integral),
    ):
        # Written so that NaN, which is not less than 0 either, is refused.
        if not isinstance(value, kind) or not value >= 0:
            what = "a whole number" if kind is Integral else "a number"
            msg = f"{name} must be {what} from 0 up, got {value!r}"
            raise ConfigError(msg)


def gumbel_noise(seed: int, step: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Standard Gumbel numbers: the arg max of ``logits + temperature * noise`` is a sample.

    It is distributed as ``softmax(logits / temperature)``; at temperature 0 it is the arg max of
    the logits themselves. Row k does not depend on how many rows are asked for, so that K samples
    are K runs of one sample each.

    Args:
        seed: random seed of the run.
        step: step of the episode; what was drawn at other steps does not matter.
        shape: shape of the result; rows first.

    Source: Gumbel 1954; Maddison et al. 2014, "A* sampling", section 2.

    >>> gumbel_noise(0, 3, (2, 4))[0].tolist() == gumbel_noise(0, 3, (1, 4))[0].tolist()
    True
    """
    return np.random.default_rng((seed, step)).gumbel(size=shape).astype(np.float32)


def normal_noise(seed: int, step: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Standard normal numbers for flows; rows and arguments as :func:`gumbel_noise`.

    >>> normal_noise(0, 3, (2, 4))[0].tolist() == normal_noise(0, 3, (1, 4))[0].tolist()
    True
    """
    return np.random.default_rng((seed, step)).standard_normal(shape).astype(np.float32)
