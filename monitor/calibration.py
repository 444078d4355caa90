"""The calibration record: how signals look in successful rollouts, and the thresholds from it.

It is fitted offline (``monitor.study.calibrate``) and only evaluated here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from monitor.errors import CalibrationError

SCHEMA = 1


class TailTable(BaseModel):
    """Distribution of one signal among the steps of successful rollouts.

    ``levels[i]`` is the share of steps with a value at or below ``values[i]``; beyond the last
    level the tail falls exponentially with ``tail_scale`` (the mean excess, in the signal's unit).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    levels: tuple[Annotated[float, Field(ge=0, lt=1)], ...]
    values: tuple[FiniteFloat, ...]
    tail_scale: Annotated[FiniteFloat, Field(gt=0)]

    @model_validator(mode="after")
    def _ordered(self) -> TailTable:
        same = len(self.levels) == len(self.values) >= 2
        rising = all(a < b for a, b in zip(self.levels, self.levels[1:], strict=False))
        sorted_values = all(a <= b for a, b in zip(self.values, self.values[1:], strict=False))
        if not (same and rising and sorted_values):
            message = (
                f"levels ({len(self.levels)}) and values ({len(self.values)}) must be two or more, "
                "as many of the one as of the other, levels rising and values not falling"
            )
            raise ValueError(message)
        return self


class FilterNoise(BaseModel):
    """Standard deviations of the distance filter, fitted on rollouts; see ``BeliefConfig``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    measurement_std_m: Annotated[FiniteFloat, Field(gt=0)]
    process_std_m: Annotated[FiniteFloat, Field(ge=0)]
    process_std_velocity: Annotated[FiniteFloat, Field(ge=0)]


class Calibration(BaseModel):
    """Thresholds and tail tables of one policy in one environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = SCHEMA
    policy: str
    env: str
    task: str | None = None
    alpha: Annotated[float, Field(gt=0, lt=1)]
    """Promised rate of false alarms on successful rollouts."""
    n_success: Annotated[int, Field(ge=1)]
    tau_recover: Annotated[float, Field(ge=0)]
    """Scores from here on ask for recovery; above 1 means never."""
    tau_halt: Annotated[float, Field(ge=0)]
    signals: dict[str, TailTable]
    noise: FilterNoise | None = None
    """Of the distance filter, in place of the configuration's; the tables were made with it."""
    created_from: tuple[str, ...] = ()
    config_hash: str = ""
    """:meth:`monitor.config.MonitorConfig.score_hash` of the configuration it was fitted with."""

    def save(self, path: Path) -> None:
        """Write as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path | str) -> Calibration:
        """Read a file that :meth:`save` wrote.

        Raises:
            CalibrationError: the file is missing, is not JSON or does not fit the schema.
        """
        path = Path(path)
        try:
            return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, json.JSONDecodeError, ValidationError) as error:
            message = f"cannot use calibration {path}: {error}; make one with `vlawatch calibrate`"
            raise CalibrationError(message) from error
