"""Teaching the depth network of ``spatialvla-mini`` what the renderer knows.

The camera stands still, so that most of an image is always as far away; what the network learns
in addition to it are the arm and the objects on the table.
"""

from __future__ import annotations

import logging
from typing import Final

import numpy as np
import torch
from torch.nn import functional

from monitor.errors import ConfigError
from policies.learn.dataset import Demonstrations
from policies.learn.trainable import relit
from policies.spatialvla.conv_depth import ConvDepth

__all__ = ["teach_depth"]

log = logging.getLogger(__name__)

BATCH: Final = 32
STEPS: Final = 3000
RATE: Final = 2e-3


def teach_depth(model: ConvDepth, data: Demonstrations, *, seed: int, steps: int = STEPS) -> float:
    """Train until the steps are over.

    Args:
        model: is changed.
        data: demonstrations that hold depth.
        seed: random seed of the order of the frames and of the light.
        steps: steps of one batch each.

    Returns:
        Mean error on the held-out episodes, metres.

    Raises:
        ConfigError: if the demonstrations hold no depth.
    """
    if data.depth is None:
        msg = "these demonstrations hold no depth; record them again with policies.learn.collect"
        raise ConfigError(msg)
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.parameters(), RATE)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * (0.5 * (1.0 + np.cos(np.pi * step / steps)) + 1e-3)
        error = _error(model, data, rng.choice(data.train, BATCH), rng)
        optimizer.zero_grad(set_to_none=True)
        error.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        left = float(_error(model, data, data.validation[:: max(1, len(data.validation) // 256)]))
    log.info("depth: %.1f mm off on held-out episodes", 1e3 * left)
    return left


def _error(
    model: ConvDepth,
    data: Demonstrations,
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    rng: np.random.Generator | None = None,
) -> torch.Tensor:
    assert data.depth is not None
    pixels = torch.from_numpy(data.image[rows]).permute(0, 3, 1, 2).float() / 127.5 - 1.0
    if rng is not None:
        pixels = relit(pixels, rng)
    true = torch.from_numpy(data.depth[rows].astype(np.float32))[:, None]
    return functional.l1_loss(model.cells((pixels + 1.0) / 2.0), true)
