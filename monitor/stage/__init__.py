"""Stages: one metric, fault, scorer or controller per file, with named state for N robots."""

from monitor.stage.base import FaultStage, MetricStage, Stage
from monitor.stage.compiled import compiled
from monitor.stage.info import FaultInfo, MetricInfo
from monitor.stage.layout import Matrix, Vector, array, fresh, part
from monitor.stage.row import StepRow
from monitor.stage.setup import Setup

__all__ = [
    "FaultInfo",
    "FaultStage",
    "Matrix",
    "MetricInfo",
    "MetricStage",
    "Setup",
    "Stage",
    "StepRow",
    "Vector",
    "array",
    "compiled",
    "fresh",
    "part",
]
