"""What the monitor says about one step of N environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from monitor.records import FloatArray, Mode
from monitor.vector.history import Mask

MODES: Final = (Mode.TASK, Mode.RECOVER, Mode.HALT)


class VectorDecision(Struct, frozen=True, kw_only=True, eq=False):
    """What the monitor makes of one step of N environments; NaN is unknown in these arrays.

    Attributes:
        step: ``(N,)`` index within each episode.
        mode: ``(N,)`` 0 TASK, 1 RECOVER, 2 HALT; ``modes`` gives the names.
        score: ``(N,)``.
        metrics: ``(N,)`` by metric id, the ids of a single monitor.
        faults: ``(N,)`` bool by fault code; a code that is nowhere is left out.
        began: ``(N,)`` bool by code or mode: the alerts of this step.
        action: ``(N, D)`` finite everywhere; zeros (clipped to the space) where not ``sendable``.
        sendable: ``(N,)`` bool: whether the action may be sent.
        calibrated: whether the score rests on a calibration.
    """

    step: NDArray[np.int64]
    mode: NDArray[np.int64]
    score: FloatArray
    metrics: Mapping[str, FloatArray]
    faults: Mapping[str, Mask]
    began: Mapping[str, Mask]
    action: FloatArray
    sendable: Mask
    calibrated: bool

    @property
    def modes(self) -> list[Mode]:
        """Mode of each environment."""
        return [MODES[code] for code in self.mode.tolist()]
