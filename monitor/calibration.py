"""Calibration record: the signals of successful rollouts, and the thresholds fitted on them.

It is fitted offline (:mod:`monitor.study.calibration.calibrate`) and only read here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from monitor.errors import CalibrationError
from monitor.recorded import MetricId

SCHEMA = 1


class TailTable(BaseModel):
    """Distribution of one signal over the steps of successful rollouts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    levels: tuple[Annotated[float, Field(ge=0, lt=1)], ...]
    """Share of steps with a value at or below the value of the same index, rising."""
    values: tuple[FiniteFloat, ...]
    """Value of the signal at each level, in the signal's unit."""
    tail_scale: Annotated[FiniteFloat, Field(gt=0)]
    """Mean excess beyond the last level, in the signal's unit; the tail falls exponentially."""

    @model_validator(mode="after")
    def _ordered(self) -> TailTable:
        same = len(self.levels) == len(self.values) >= 2
        rising = all(a < b for a, b in zip(self.levels, self.levels[1:], strict=False))
        sorted_values = all(a <= b for a, b in zip(self.values, self.values[1:], strict=False))
        if not (same and rising and sorted_values):
            message = (
                f"levels ({len(self.levels)}) and values ({len(self.values)}) must have the same "
                "length of at least two, with rising levels and values that do not fall"
            )
            raise ValueError(message)
        return self


class FilterNoise(BaseModel):
    """Standard deviations of the distance filter, fitted on rollouts; see ``BeliefConfig``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    measurement_std_m: Annotated[FiniteFloat, Field(gt=0)]
    """Standard deviation of the measured distance, metres."""
    process_std_m: Annotated[FiniteFloat, Field(ge=0)]
    """Standard deviation of the distance's own change per step, metres."""
    process_std_velocity: Annotated[FiniteFloat, Field(ge=0)]
    """Standard deviation of the velocity's change per step, metres per step."""


class Calibration(BaseModel):
    """Thresholds and tail tables of one policy in one environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = SCHEMA
    policy: str
    """Name of the policy."""
    env: str
    """Name of the environment."""
    task: str | None = None
    """Key of the task, if all rollouts had the same."""
    alpha: Annotated[float, Field(gt=0, lt=1)]
    """Promised false-alarm rate on successful rollouts."""
    n_success: Annotated[int, Field(ge=1)]
    """Number of successful rollouts that it was fitted on."""
    tau_recover: Annotated[float, Field(ge=0)]
    """Score from which RECOVER begins; above 1 means never."""
    tau_halt: Annotated[float, Field(ge=0)]
    """Score from which HALT begins; above 1 means never."""
    signals: dict[MetricId, TailTable]
    """Distribution of each signal by metric id."""
    noise: FilterNoise | None = None
    """Noise of the distance filter that the tables were made with, in place of the
    configuration's; None keeps the configuration's."""
    created_from: tuple[str, ...] = ()
    """Runs and episodes that it was fitted on."""
    config_hash: str = ""
    """:meth:`monitor.config.MonitorConfig.score_hash` of the configuration it was fitted with."""

    def save(self, path: Path) -> None:
        """Write the calibration as a JSON file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path | str) -> Calibration:
        """Read a file written by :meth:`save`.

        Raises:
            CalibrationError: the file is missing, is not JSON or does not fit the schema.
        """
        path = Path(path)
        try:
            return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, json.JSONDecodeError, ValidationError) as error:
            message = f"cannot use calibration {path}: {error}; make one with `vlawatch calibrate`"
            raise CalibrationError(message) from error
