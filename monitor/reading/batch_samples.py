"""EV, CHUNK and pictures of N environments."""

from __future__ import annotations

from typing import Any, final
from zlib import crc32

import numpy as np

from monitor.metrics.sample_spread import normalise
from monitor.reading.arrays import to_array
from monitor.reading.batch import Mask, note
from monitor.reading.step import PIXELS
from monitor.records import FloatArray


@final
class VectorSamples:
    """Remembers the last plan of each environment."""

    def __init__(self, low: FloatArray, high: FloatArray, n: int) -> None:
        self._low, self._high, self._n = low, high, n
        self._last: FloatArray | None = None

    def reset(self, which: Mask) -> None:
        """Begin an episode in some environments."""
        if self._last is not None:
            self._last[which] = np.nan

    def update(
        self, samples: Any, chunk: Any, values: dict[str, FloatArray], faults: dict[str, Mask]
    ) -> None:
        """Take samples ``(N, K, D)`` and plans ``(N, H, D)`` in, either None."""
        given = self._actions("SAMPLES", samples, faults)
        if given is not None:
            flat = (given == given[:, :1]).all(axis=(1, 2)) | (given.shape[1] < 2)
            ev = given.std(axis=1).mean(axis=1)
            values["EV"] = np.where(flat, np.nan, ev)
            note(faults, "EV_UNINFORMATIVE", flat & ~np.isnan(ev))
        plan = self._actions("CHUNK", chunk, faults)
        last, self._last = self._last, plan
        if plan is not None and last is not None:
            count = min(last.shape[1] - 1, plan.shape[1])
            if count > 0:
                gap = np.abs(last[:, 1 : count + 1] - plan[:, :count])
                values["CHUNK"] = gap.mean(axis=(1, 2))

    def _actions(self, kind: str, value: Any, faults: dict[str, Mask]) -> FloatArray | None:
        if value is None:
            return None
        array = to_array(value)
        right = array is not None and array.ndim == 3 and array.shape[1] > 0
        if array is None or not right or array.shape[::2] != (self._n, len(self._low)):
            note(faults, f"{kind}_SHAPE", np.ones(self._n, dtype=bool))
            return None
        bad = ~np.isfinite(array).all(axis=(1, 2))
        note(faults, f"NONFINITE_{kind}", bad)
        out = array.astype(np.float64, order="C")
        out[bad] = np.nan
        return normalise(out, self._low, self._high)


def read_pictures(
    image: Any, n: int, faults: dict[str, Mask]
) -> tuple[FloatArray, FloatArray] | None:
    """Return fingerprints and standard deviations, ``(N,)``, of pictures ``(N, H, W, 3)``."""
    if image is None:
        return None
    array = to_array(image)
    right = array is not None and array.ndim == 4 and array.shape[0] == n and array.size > 0
    if array is None or not right or array.shape[3] != 3 or array.dtype != np.uint8:
        note(faults, "CAMERA_FORMAT", np.ones(n, dtype=bool))
        return None
    flat = np.ascontiguousarray(array).reshape(n, -1)
    prints = np.array([crc32(row.data) for row in flat], dtype=np.float64)
    sample = flat[:, :: max(1, flat.shape[1] // PIXELS)].astype(np.float64)
    # As in a single monitor, without rounding up to the root.
    count, totals, squares = sample.shape[1], sample.sum(axis=1), (sample * sample).sum(axis=1)
    return prints, np.sqrt(count * squares - totals * totals) / count
