"""The compiled core of N environments, from arrays to arrays."""

from __future__ import annotations

from typing import Final, final

import numpy as np

from monitor.core import judge, measure
from monitor.core.plan import Plan
from monitor.core.rows import IDS, Rows
from monitor.reading.batch import Batch
from monitor.records import FloatArray
from monitor.vector.history import Mask

CODES: Final = (
    (judge.IN_RANGE, "ACTION_RANGE"),
    (judge.BYPASS, "VISION_BYPASS"),
    (judge.BLACK, "CAMERA_BLACK"),
    (judge.FROZEN, "CAMERA_FROZEN"),
    (judge.STALL, "STALL"),
    (judge.DROP, "DROP"),
    (judge.GRIP, "GRIPPER_NO_RESPONSE"),
    (judge.VOCABULARY, "OFF_VOCAB_TOKEN"),
    (judge.OVER, "UNNORM_MISMATCH"),
    (judge.LATELY, "LATENCY"),
)
"""Faults by their column, in the order of the shipped detectors."""


@final
class VectorCore:
    """As :class:`monitor.core.Core`, with NaN for unknown."""

    def __init__(self, plan: Plan, n: int) -> None:
        rows = self._rows = Rows(plan, n)
        self._given, self._seen = np.full((n, rows.given), np.nan), np.full((n, rows.seen), np.nan)
        self._found = np.zeros((n, judge.COLUMNS))
        dim = rows.given - measure.ACTION
        self._signals = judge.ACTION + dim
        self._named = (
            (judge.STILL, "STILL"),
            (judge.MASS, "action_mass"),
            (judge.OUTSIDE, "tokens_outside"),
            *((self._signals + j, name) for j, name in enumerate(rows.signals)),
        )

    def reset(self, which: Mask) -> None:
        """Begin an episode in some environments."""
        self._rows.reset(which)

    def forget_moved(self, which: Mask) -> None:
        """Start the score's pools of some environments afresh after a retreat."""
        self._rows.forget_moved(which)

    def measure(self, batch: Batch, values: dict[str, FloatArray]) -> None:
        """Write the metrics of one step into ``values``, ``(N,)`` by id, as columns of one array."""
        given = self._given
        given[:, measure.DISTANCE] = batch.goal_distance
        given[:, measure.GRIPPER] = batch.gripper
        given[:, measure.ALPHA] = values.get("alpha", np.nan)
        given[:, measure.PLACE : measure.TURN] = batch.position
        given[:, measure.TURN : measure.ACTION] = batch.orientation
        given[:, measure.ACTION :] = batch.action
        out = np.empty((len(given), measure.COLUMNS))  # handed out, so never the same
        self._rows.measure(given, out)
        values.update(zip(IDS, out.T, strict=False))

    def judge(
        self, batch: Batch, values: dict[str, FloatArray],
    ) -> FloatArray:  # fmt: skip
        """Take in what :meth:`measure` has been given and return the scores, ``(N,)``.

        Args:
            batch: of the step.
            values: metrics by id, plugins' as well.
        """
        seen = self._seen
        for column, name in self._named:
            value = values.get(name)
            seen[:, column] = np.nan if value is None else value
        seen[:, judge.DISTANCE] = batch.goal_distance
        seen[:, judge.GRIPPER] = batch.gripper
        seen[:, judge.LATENCY] = batch.latency_s
        seen[:, judge.SUCCESS] = batch.success
        seen[:, judge.IMAGE], seen[:, judge.IMAGE_STD] = batch.image_id, batch.image_std
        seen[:, judge.LOGITS] = batch.logits_id
        seen[:, judge.PLACE : judge.ACTION] = batch.position
        seen[:, judge.ACTION : self._signals] = batch.action
        self._rows.judge(seen, self._found)
        return self._found[:, judge.SCORE].copy()

    def faults(self, faults: dict[str, Mask]) -> None:
        """Add where :meth:`judge` has found what, by code."""
        found = self._found
        totals = np.add.reduce(found, axis=0).tolist()
        if totals[judge.FOUND] == 0.0:
            return
        for column, code in CODES:
            if totals[column] > 0.0:
                faults[code] = found[:, column] > 0.0
