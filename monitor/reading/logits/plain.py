"""Sums over logits: the only passes over a vocabulary, taken where the logits are.

A row is one token. The compiled kernel does float32 where numba is installed; without it, many
short rows are worked on at once and long ones each alone, so that what is made of them
stays in the cache. Logits on another device are summed up there; one transfer brings the sums.
"""

from __future__ import annotations

from math import isfinite, isnan
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.token_uncertainty import SUMS, measure, pool
from monitor.reading.logits.compiled import (
    CHOSEN,
    LARGEST,
    POOLED,
    ROWS,
    SECOND,
    SHARE,
    TOP,
    WEIGHTED,
    Z,
    load_kernel,
)
from monitor.records import FloatArray

SINGLE: Final = np.dtype(np.float32)

LARGE: Final = 4096
"""Classes from which on every pass counts, and no longer every call."""
BLOCK: Final = 1 << 15
"""Logits that are worked on at once: with what is made of them they stay in the cache."""
LEAST: Final = -700.0
"""Stands for the logarithm of 0: e^-700 is 0 in float32 and as good as 0 in float64."""
MILD: Final = 32.0
"""Logits beyond this are shifted before the exponential: float32 would cancel badly without."""
WILD: Final = 1e30
"""Squared logits beyond this may overflow when they are subtracted."""


class _Stack(NamedTuple):
    """Buffers for R rows of V: log e, e and ones one behind the other, and views of them."""

    whole: NDArray[Any]
    log_e: NDArray[Any]
    e: NDArray[Any]
    column: NDArray[Any]
    sums: NDArray[Any]
    begins: NDArray[np.intp]
    e_begins: NDArray[np.intp]


class _Line(NamedTuple):
    """Buffers for one long row: e, log e, and ones."""

    e: NDArray[Any]
    shifted: NDArray[Any]
    ones: NDArray[Any]


@final
class Scratch:
    """Buffers that are made once per shape and used at every step.

    Not shared between threads; a copy or pickle begins empty, so that neither grows by them.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], Any] = {}

    def __reduce__(self) -> tuple[type[Scratch], tuple[()]]:
        return Scratch, ()

    def stack(self, logits: NDArray[Any]) -> _Stack:
        """Return buffers for such logits of a small vocabulary."""
        (rows, v), dtype = logits.shape, logits.dtype
        key = (rows, v, dtype)
        found: _Stack | None = self._kept.get(key)
        if found is None:
            whole = np.ones((rows, 3, v), dtype)
            begins = np.arange(rows) * v
            found = _Stack(
                whole, whole[:, 0], whole[:, 1], whole[:, 1, :, None],
                np.empty((rows, 3, 1), dtype), begins, 3 * begins + v,
            )  # fmt: skip
            self._keep(key, found)
        return found

    def line(self, logits: NDArray[Any]) -> _Line:
        """Return buffers for a row of such logits of a large vocabulary."""
        v, dtype = logits.shape[1], logits.dtype
        found: _Line | None = self._kept.get((v, dtype))
        if found is None:
            found = _Line(*np.ones((3, v), dtype))
            self._keep((v, dtype), found)
        return found

    def _keep(self, key: tuple[Any, ...], made: Any) -> None:
        if len(self._kept) >= 8:  # shapes that change all the time must not pile up
            self._kept.clear()
        self._kept[key] = made


def reduce_rows(logits: NDArray[Any], table: FloatArray, scratch: Scratch) -> None:
    """Write the sums of numpy logits, by numpy alone.

    A row that holds NaN or +inf, or only -inf, has a ``LARGEST`` that is not finite. -inf is a
    masked class: e = 0 and 0 log 0 = 0.

    Args:
        logits: ``(R, V)`` float32 or float64, V >= 2; not written to.
        table: ``(13, R)``, rows as named in :mod:`monitor.reading.logits.compiled`; those of the sums are
            written.
        scratch: of the caller.

    >>> table = np.empty((ROWS, 1))
    >>> reduce_rows(np.zeros((1, 4)), table, Scratch())
    >>> table[SUMS].T.tolist()
    [[0.0, 4.0, 4.0, 1.0, 0.0, 0.0]]
    """
    count, v = logits.shape
    take = _stacked if v < LARGE else _long
    size = max(1, BLOCK // v) if v < LARGE else count
    with np.errstate(over="ignore", invalid="ignore"):
        for begin in range(0, count, size):
            block = logits[begin : begin + size]
            if not block.flags.c_contiguous:
                block = np.ascontiguousarray(block)
            take(block, table[:, begin : begin + size], scratch)


def _stacked(logits: NDArray[Any], out: FloatArray, scratch: Scratch) -> None:
    """Write the sums of a few rows by numpy alone."""
    whole, log_e, e, column, sums, begins, e_begins = scratch.stack(logits)
    top = logits.argmax(axis=1)  # NaN and +inf win
    largest = logits.take(top + begins)
    if not largest.dot(largest) < WILD:
        _tamed(logits, largest, out, scratch)
        return
    np.subtract(logits, largest[:, None], out=log_e)
    np.maximum(log_e, LEAST, out=log_e)
    np.exp(log_e, out=e)
    # One product per row, not one for all: a row must not depend on how many are with it.
    np.matmul(whole, column, out=sums)
    out[WEIGHTED : Z + 1] = sums[:, :, 0].T
    whole.put(top + e_begins, 0.0)
    out[SECOND] = np.maximum.reduce(e, axis=1)
    out[LARGEST] = largest
    out[TOP] = top


def _long(logits: NDArray[Any], out: FloatArray, scratch: Scratch) -> None:
    """Write the sums of long rows, one by one, so that each stays in the cache."""
    e, shifted, ones = scratch.line(logits)
    columns = []
    for row in logits:
        top = int(row.argmax())
        largest = row.item(top)
        # Mild logits neither overflow nor cancel much: the pass that subtracts is saved.
        mild = -MILD < largest < MILD
        log_e, base = (row, largest) if mild else (_shifted(row, largest, shifted), 0.0)
        highest, weighted = _weighted(log_e, top, e)
        if mild and isnan(weighted):  # 0 * -inf of a masked class
            log_e, base = _shifted(row, largest, shifted), 0.0
            highest, weighted = _weighted(log_e, top, e)
        # The likeliest class is added in double precision: it may be most of the sum.
        scale = 1.0 / highest
        rest = float(e.dot(ones)) * scale
        squares = float(e.dot(e)) * scale * scale
        second = e.item(e.argmax()) * scale
        z = rest + 1.0
        columns.append((weighted * scale - base * rest, squares + 1.0, z, second, largest, top))
    out[SUMS] = np.array(columns).T


def _shifted(row: NDArray[Any], largest: float, buffer: NDArray[Any]) -> NDArray[Any]:
    """Return log e; all zeros for a row that cannot be used."""
    if not isfinite(largest):
        buffer[:] = 0.0
        return buffer
    if largest * largest < WILD:
        np.subtract(row, row.dtype.type(largest), out=buffer)
    else:  # the difference of two such may overflow
        np.maximum(row.astype(np.float64) - largest, LEAST, out=buffer, casting="same_kind")
    np.maximum(buffer, LEAST, out=buffer)
    return buffer


def _weighted(log_e: NDArray[Any], top: int, e: NDArray[Any]) -> tuple[float, float]:
    """Write e^log_e into ``e``, but 0 for the likeliest class.

    Returns:
        That class's own e, and sum e log e of the others.
    """
    np.exp(log_e, out=e)
    highest = e.item(top)
    e[top] = 0.0
    return highest, float(e.dot(log_e))


def _tamed(logits: NDArray[Any], largest: NDArray[Any], out: FloatArray, scratch: Scratch) -> None:
    """Write the sums of rows of which some cannot be used, or not be subtracted from."""
    finite = np.isfinite(largest)
    tame = finite & (largest * largest < WILD / len(largest))
    calm = logits.copy()
    calm[~tame] = 0.0
    reduce_rows(calm, out, scratch)
    wild = finite & ~tame
    if wild.any():
        wide = logits[wild].astype(np.float64)
        wide -= wide.max(axis=1, keepdims=True)
        part = np.empty((len(out), len(wide)))
        reduce_rows(np.maximum(wide, LEAST), part, scratch)
        out[SUMS, wild] = part[SUMS]
    out[LARGEST] = largest


NO_IDS: Final = np.empty(0, dtype=np.int64)


def digest_of(
    logits: Any, ids: NDArray[np.int64] | None, span: tuple[int, int] | None, scratch: Scratch,
    *, groups: int = 1, rows: int = ROWS,
) -> FloatArray:  # fmt: skip
    """Return what is to be known of the logits of G groups of N tokens: of G steps.

    Args:
        logits: ``(G N, V)`` numpy, float32 or float64, or a torch tensor, which stays on its device.
        ids: ``(G N,)`` columns of the chosen tokens; what is no column is seen.
        span: half-open range of the action bins within V.
        scratch: of the caller.
        groups: G.
        rows: how many of the tables' rows are wanted too.

    Returns:
        ``(G, 22 + rows W)``: columns as named in :mod:`monitor.reading.logits.compiled`, then the first rows
        of each group's own table, W long: N, or 2 N with a span, the second half of the action bins
        alone.
    """
    kernel = load_kernel() if isinstance(logits, np.ndarray) and logits.dtype == SINGLE else None
    count, v = logits.shape
    tokens, parts = count // groups, 1 if span is None else 2
    if kernel is not None:
        low, high = span or (0, 0)
        out = np.empty((groups, POOLED + rows * parts * tokens))
        # Compiled for plain memory alone.
        plain = logits if logits.flags.carray else logits.copy(order="C")
        chosen = NO_IDS if ids is None else ids if ids.flags.carray else np.array(ids)
        kernel(plain, chosen, low, high, out)
        return out
    columns = None if ids is None else np.minimum(np.maximum(ids, 0), v - 1)
    table = table_of(logits, columns, span, scratch)
    pooled = pool(table, ids, span, groups=groups, v=v)
    by_group = table[:rows].reshape(rows, parts, groups, tokens).transpose(2, 0, 1, 3)
    return np.concatenate([pooled, by_group.reshape(groups, rows * parts * tokens)], axis=1)


def table_of(
    logits: Any, ids: NDArray[np.int64] | None, span: tuple[int, int] | None, scratch: Scratch
) -> FloatArray:
    """Return the table of ``(R, V)`` logits, sums and metrics by token, without the kernel.

    Args:
        logits: numpy, float32 or float64, or a torch tensor, which stays on its device.
        ids: ``(R,)`` valid columns, of the chosen tokens.
        span: half-open range of the action bins within V.
        scratch: of the caller.

    Returns:
        ``(13, R)``, rows as named in :mod:`monitor.reading.logits.compiled`; ``(13, 2 R)`` with a span,
        the second half of the action bins alone. Shares are left unknown.
    """
    count, v = logits.shape
    if isinstance(logits, np.ndarray) and logits.dtype == np.uint8:
        logits = logits.astype(np.float64)
    table = np.empty((ROWS, count if span is None else 2 * count))
    table[CHOSEN] = table[SHARE] = np.nan
    if not isinstance(logits, np.ndarray):
        _write_from_device(logits, ids, span, table)
    else:
        reduce_rows(logits, table[:, :count], scratch)
        if span is not None:
            bins = np.ascontiguousarray(logits[:, slice(*span)])
            reduce_rows(bins, table[:, count:], scratch)
        if ids is not None:
            table[CHOSEN, :count] = logits[np.arange(count), ids]
    measure(table[:, :count], v)
    if span is not None:
        measure(table[:, count:], span[1] - span[0])
    return table


def on_a_device(logits: Any) -> bool:
    """Tell whether ``logits`` is a torch tensor off the CPU, which is then worked on there.

    Tensors of the device "meta" have no values.
    """
    place = getattr(getattr(logits, "device", None), "type", "cpu")
    return place not in ("cpu", "meta") and hasattr(logits, "detach")


def _write_from_device(
    logits: Any, ids: NDArray[np.int64] | None, span: tuple[int, int] | None, table: FloatArray
) -> None:
    """Write the sums and the chosen logits of a table."""
    import torch

    with torch.no_grad():
        x = logits.detach()
        if not x.is_floating_point() or x.dtype.itemsize < 4:
            x = x.float()
        parts = [_device_rows(x)]
        if span is not None:
            parts.append(_device_rows(x[:, slice(*span)]))
        rows = [torch.cat(each) for each in zip(*parts, strict=True)]
        if ids is not None:
            index = torch.from_numpy(ids).to(x.device)
            picked = x.gather(1, index[:, None])[:, 0]
            rows.append(torch.cat([picked] * len(parts)))
        # Apple's devices have no double precision.
        wide = torch.float32 if x.device.type == "mps" else torch.float64
        whole = torch.stack([row.to(wide) for row in rows]).cpu().numpy().astype(np.float64)
    broken = ~np.isfinite(whole[LARGEST - WEIGHTED])
    whole[: SECOND + 1 - WEIGHTED, broken] = 1.0
    table[SUMS] = whole[: TOP + 1 - WEIGHTED]
    if ids is not None:
        table[CHOSEN, : len(ids)] = whole[-1, : len(ids)]


def _device_rows(x: Any) -> list[Any]:
    """Return the rows of the table of sums as tensors."""
    largest, top = x.max(dim=-1)
    log_e = (x - largest[:, None]).clamp(min=LEAST)
    e = log_e.exp()
    second = e.scatter(-1, top[:, None], 0.0).amax(dim=-1)
    return [(e * log_e).sum(-1), (e * e).sum(-1), e.sum(-1), second, largest, top]
