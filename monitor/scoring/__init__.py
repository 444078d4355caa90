"""Scores: what a monitor's mode follows, computed from metrics."""

from monitor.scoring.base import Scorer
from monitor.scoring.surprise import SurpriseScorer

__all__ = ["Scorer", "SurpriseScorer"]
