"""Scorers by name: shipped, entry-point group ``vlawatch.scorers``, or ``module:Class``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from monitor.calibration import TailTable
from monitor.plugins import resolve
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
