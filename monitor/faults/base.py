"""What a fault detector is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from monitor.config import FaultsConfig
from monitor.gripper import GripperCommands
from monitor.records import Evidence, Fault, FloatArray, Numbers


class Scene(Struct, frozen=True, kw_only=True):
    """What a detector may look at in one step.

    Attributes:
        step: index within the episode.
        evidence: of this step.
        metrics: of this step.
        succeeded: whether the task has reported success in this episode.
    """

    step: int
    evidence: Evidence
    metrics: Mapping[str, float | None]
    succeeded: bool


class Detector(Protocol):
    """One family of faults. Unknown input may raise a fault, it never ends one."""

    def check(self, scene: Scene) -> list[Fault]:
        """Return the faults present at this step."""

    def reset(self) -> None:
        """Begin an episode; identical to a new instance."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setting:
    """What a detector is built from.

    Attributes:
        config: the ``faults`` section of the configuration.
        action_low: ``(D,)``.
        action_high: ``(D,)``.
        window: W.
        control_dt_s: seconds per step.
        gripper: how the gripper is told.
        gripper_change: change of the opening that counts.
        still_path_m: path below which nothing moved.
    """

    config: FaultsConfig
    action_low: FloatArray
    action_high: FloatArray
    window: int
    control_dt_s: float
    gripper: GripperCommands
    gripper_change: float
    still_path_m: float

    @property
    def translation_limits(self) -> Numbers:
        """|q99| per translation dimension: as configured, or the ends of the action space."""
        ends = np.maximum(np.abs(self.action_low), np.abs(self.action_high))[:3]
        return self.config.unnorm_limits or tuple(ends.tolist())

    @property
    def deadline_s(self) -> float:
        """Latest reply of the policy: as configured, or the control period."""
        return self.config.deadline_s or self.control_dt_s


def fault(
    code: str,
    scene: Scene,
    message: str,
    *,
    field: str | None = None,
    value: Any = None,
    **detail: Any,
) -> Fault:
    """Return a fault with its step, the field of the step that shows it, and the value there."""
    text = f"step {scene.step}: {message}"
    about = {"step": scene.step, "field": field, "value": value, **detail}
    return Fault(code=code, message=text, detail=about)
