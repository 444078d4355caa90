"""What stages, plugins and recoveries are built from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from monitor.calibration import FilterNoise
from monitor.config import MonitorConfig
from monitor.records import FloatArray, Numbers
from monitor.stage.gripper import GripperCommands
from monitor.stage.info import MetricInfo
from monitor.stage.row import padded


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setup:
    """One robot's action space and the monitor's configuration.

    Attributes:
        config: Configuration of the monitor.
        action_low: ``(D,)`` lower end of the action space, environment units.
        action_high: ``(D,)`` upper end.
        noise: Noise of the distance filter as a calibration has fitted it, None without one.
        metrics: What is known of each metric, those of plugins included; complete for scorers.
    """

    config: MonitorConfig
    action_low: FloatArray
    action_high: FloatArray
    noise: FilterNoise | None = None
    metrics: Mapping[str, MetricInfo] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """D, the length of the action."""
        return len(self.action_low)

    @property
    def window(self) -> int:
        """W, the steps that windowed metrics look back on."""
        return self.config.metrics.window

    @property
    def control_dt_s(self) -> float:
        """Control period in seconds."""
        return self.config.control_dt_s

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths by name, for the declarations of stages."""
        return {"window": self.window, "dim": padded(self.dim)}

    @property
    def gripper(self) -> GripperCommands:
        """How the gripper is commanded."""
        return GripperCommands.of(self.config.robot.gripper)

    @property
    def translation_limits(self) -> Numbers:
        """|q99| per translation dimension: as configured, or the ends of the action space."""
        ends = np.maximum(np.abs(self.action_low), np.abs(self.action_high))[:3]
        return self.config.faults.unnorm_limits or tuple(ends.tolist())

    @property
    def deadline_s(self) -> float:
        """Latest reply of the policy in seconds: as configured, or the control period."""
        return self.config.faults.deadline_s or self.control_dt_s

    def padded(self, values: FloatArray, rest: float) -> list[float]:
        """Return ``(D,)`` values as a list of the padded action's length."""
        return [*values.tolist(), *[rest] * (padded(self.dim) - self.dim)]
