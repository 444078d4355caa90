"""Scorers by name: shipped, entry-point group ``vlawatch.scorers``, or ``module:Class``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from monitor.calibration import TailTable
from monitor.plugins import resolve
from monitor.records import FloatArray
from monitor.scoring.base import Scorer
from monitor.stage import Setup

GROUP: Final = "vlawatch.scorers"
SCORERS: Final = {"surprise": "monitor.scoring.surprise:SurpriseScorer"}
"""Shipped scorers by name."""


def build_scorer(setup: Setup, tables: Mapping[str, TailTable] | None, n: int) -> Scorer:
    """Return the configured scorer for N robots.

    Raises:
        ConfigError: No package offers a scorer of that name.
    """
    factory = resolve("scorer", setup.config.score.scorer, GROUP, SCORERS)
    scorer: Scorer = factory(setup, tables, n)
    return scorer


def foreign_scores(scorer: Scorer, values: FloatArray, succeeded: FloatArray) -> FloatArray:
    """Return what a scorer of another package gives for N robots.

    Raises:
        ValueError: It is not an array of shape ``(N,)``.
    """
    scores = np.asarray(scorer.update(values, succeeded), dtype=np.float64)
    if scores.shape != (len(values),):
        message = f"update() must return {len(values)} scores, it returned shape {scores.shape}"
        raise ValueError(message)
    return scores
