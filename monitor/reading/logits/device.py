"""Logits on another device: measured there by torch, so that one transfer brings a few numbers."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.reading.logits.plain import MEASURED
from monitor.records import FloatArray

__all__ = ["measure_on_device", "on_device"]


def on_device(logits: Any) -> bool:
    """Tell whether ``logits`` is a torch tensor off the CPU, which is then measured there.

    Tensors of the device "meta" have no values.
    """
    try:
        kind = getattr(getattr(logits, "device", None), "type", "cpu")
        return kind not in ("cpu", "meta") and hasattr(logits, "detach")
    except Exception:  # a foreign type may raise anything
        return False


def measure_on_device(
    logits: Any, span: tuple[int, int] | None, ids: NDArray[np.int64] | None
) -> tuple[NDArray[Any], NDArray[Any] | None, FloatArray | None]:
    """Measure ``(R, V)`` logits where they are.

    Args:
        logits: Tensor of any type.
        span: Half-open range of the action bins within V.
        ids: ``(R,)`` chosen classes.

    Returns:
        Records of :data:`~monitor.reading.logits.plain.MEASURED` over all classes, over the bins,
        and the logits of the chosen classes.
    """
    import torch

    with torch.no_grad():
        x = logits.detach()
        if not x.is_floating_point() or x.dtype.itemsize < 4:
            x = x.float()
        parts = [x] if span is None else [x, x[:, slice(*span)]]
        rows = [row for part in parts for row in _measure(part)]
        if ids is not None:
            index = torch.from_numpy(ids).to(x.device).clamp(0, x.shape[1] - 1)
            rows.append(x.gather(1, index[:, None])[:, 0])
        # Apple's devices have no double precision.
        wide = torch.float32 if x.device.type == "mps" else torch.float64
        found = torch.stack([row.to(wide) for row in rows]).cpu().numpy().astype(np.float64)
    size = len(MEASURED.names or ())
    whole, *bins = (
        np.ascontiguousarray(found[begin : begin + size].T).view(MEASURED)[:, 0]
        for begin in range(0, size * len(parts), size)
    )
    return whole, bins[0] if bins else None, None if ids is None else found[-1]


def _measure(x: Any) -> list[Any]:
    """Return the fields of a measured token as tensors ``(R,)``, by the formulas of numpy."""
    import torch

    p, v = x.softmax(-1), x.shape[-1]
    entropy = -(p * p.clamp(min=torch.finfo(p.dtype).tiny).log()).sum(-1) / log(v)
    gini = (1.0 - (p * p).sum(-1)) / (1.0 - 1.0 / v)
    first, second = p.topk(2).values.unbind(-1)
    top_probability = 1.0 - (first - 1.0 / v) / (1.0 - 1.0 / v)
    margin = 1.0 - (first - second)
    metrics = [one.clamp(0.0, 1.0) for one in (entropy, gini, top_probability, margin)]
    return [*metrics, x.logsumexp(-1), x.argmax(-1)]
