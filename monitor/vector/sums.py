"""Sums over the logits of N environments, taken where the logits are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.tokens import TokenView, peaks, row_sums, view_of_sums
from monitor.records import FloatArray

BLOCK: Final = 32
"""Environments whose logits are worked on at once: few enough to stay in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """What the metrics need of the logits, each ``(N, tokens)``.

    Attributes:
        table: ``(6, N, tokens)`` sum e, second e, sum e^2, sum e log e, largest logit, its class;
            e = exp(logit - largest).
        bins: the same over the action bins alone; None without a range.
        chosen: logits of the chosen tokens; None without ids.
        size: V.
        bins_size: how many bins.
    """

    table: FloatArray
    bins: FloatArray | None
    chosen: FloatArray | None
    size: int
    bins_size: int

    @property
    def largest(self) -> FloatArray:
        """Not finite exactly where the logits are unusable."""
        row: FloatArray = self.table[4]
        return row

    def view(self) -> TokenView:
        """Token metrics over all of V, ``(4, N, tokens)`` and ``(N, tokens)``."""
        return _view(self.table, self.size)

    def bins_view(self) -> TokenView:
        """Token metrics over the bins; only with bins."""
        return _view(self.table if self.bins is None else self.bins, self.bins_size)


def _view(table: FloatArray, size: int) -> TokenView:
    _, n, tokens = table.shape
    flat = table.reshape(6, n * tokens)
    good = np.isfinite(flat[4])
    stats = np.where(good, flat[:4], 1.0)
    view = view_of_sums(stats[[0, 1, 2, 3]], stats[0], flat[4], size)
    return TokenView(values=view.values.reshape(4, n, tokens), log_z=view.log_z.reshape(n, tokens))


def sums_of(logits: Any, ids: NDArray[np.int64] | None, span: tuple[int, int] | None) -> Sums:
    """Return the sums of ``(N, tokens, V)`` logits, numpy or torch.

    Args:
        logits: numpy, or a torch tensor on any device, which stays there: one transfer brings
            the sums.
        ids: ``(N, tokens)`` valid columns.
        span: half-open range of the action bins within V.
    """
    size = logits.shape[2]
    bins_size = size if span is None else span[1] - span[0]
    take = _numpy_tables if isinstance(logits, np.ndarray) else _torch_tables
    table, bins, chosen = take(logits, ids, span)
    return Sums(table=table, bins=bins, chosen=chosen, size=size, bins_size=bins_size)


Tables = tuple[FloatArray, FloatArray | None, FloatArray | None]


def _numpy_tables(
    logits: NDArray[Any], ids: NDArray[np.int64] | None, span: tuple[int, int] | None
) -> Tables:
    n, tokens, v = logits.shape
    table = np.empty((6, n, tokens))
    bins = None if span is None else np.empty((6, n, tokens))
    for begin in range(0, n, BLOCK):
        envs = slice(begin, min(begin + BLOCK, n))
        flat = logits[envs].reshape(-1, v)
        table[:, envs] = _block(flat).reshape(6, -1, tokens)
        if bins is not None and span is not None:
            slim = np.ascontiguousarray(flat[:, slice(*span)])
            bins[:, envs] = _block(slim).reshape(6, -1, tokens)
    chosen = None
    if ids is not None:
        chosen = np.take_along_axis(logits, ids[:, :, None], axis=2)[:, :, 0].astype(np.float64)
    return table, bins, chosen


def _block(rows: NDArray[Any]) -> FloatArray:
    peak = peaks(rows)
    broken = ~np.isfinite(peak.value)
    value = peak.value
    if broken.any():
        rows = rows.copy()
        rows[broken] = 0.0
        peak = peaks(rows)
    stats, z = row_sums(rows, peak)
    out: FloatArray = np.empty((6, len(rows)))
    out[0], out[1:4], out[4], out[5] = z, stats[1:], value, peak.top
    return out


def _torch_tables(
    logits: Any, ids: NDArray[np.int64] | None, span: tuple[int, int] | None
) -> Tables:
    import torch

    with torch.no_grad():
        x = logits.detach()
        if not x.is_floating_point() or x.dtype.itemsize < 4:
            x = x.float()
        rows = _torch_rows(torch, x)
        if span is not None:
            rows += _torch_rows(torch, x[..., slice(*span)])
        if ids is not None:
            index = torch.from_numpy(ids).to(x.device)
            rows.append(x.gather(2, index[..., None])[..., 0])
        # Apple's devices have no double precision.
        wide = torch.float32 if x.device.type == "mps" else torch.float64
        whole = torch.stack([row.to(wide) for row in rows]).cpu().numpy().astype(np.float64)
    bins = None if span is None else whole[6:12]
    return whole[:6], bins, None if ids is None else whole[-1]


def _torch_rows(torch: Any, x: Any) -> list[Any]:
    value, top = x.max(dim=-1)
    shifted = x - value[..., None]
    e = shifted.exp()
    weighted = (e * shifted.clamp(min=-700.0)).sum(dim=-1)
    second = e.scatter(-1, top[..., None], 0.0).amax(dim=-1)
    return [e.sum(dim=-1), second, (e * e).sum(dim=-1), weighted, value, top]
