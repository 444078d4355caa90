"""The rule-based grade of a rollout: weighted indicators on the experts' scale.

S_raw = sum w_i s_i' / sum w_i with s_i' = s_i / eta, and
S_RG = mu_EG + sigma_EG (S_raw - mu_raw) / (sigma_raw + epsilon); weights and statistics are those
of the training split (:mod:`monitor.study.quality.grade_fit`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from monitor.errors import CalibrationError
from monitor.study.quality.indicators import Measured
from monitor.study.runs import Run

__all__ = ["EPSILON", "LEVELS", "Grade", "setup", "steadiness"]

SCHEMA: Final = 1
EPSILON: Final = 1e-9
LEVELS: Final = tuple(np.linspace(0.0, 1.0, 21).round(2).tolist())
"""Levels of the quantiles in a table of steadiness."""

Name = Literal["velocity", "acceleration", "task_time", "start_time"]
Table = Annotated[tuple[FiniteFloat, ...], Field(min_length=len(LEVELS), max_length=len(LEVELS))]


class Grade(BaseModel):
    """Weights and training statistics of a grade, for runs of one robot at one control rate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = SCHEMA
    env: str
    robot: str | None
    control_dt_s: Annotated[FiniteFloat, Field(gt=0)] | None
    weights: dict[Name, Annotated[FiniteFloat, Field(ge=0)]]
    """Weights by indicator in use; their sum is 1."""
    quantiles: dict[Name, Table]
    """Quantiles of U_v and U_alpha on the training split, at :data:`LEVELS`."""
    horizon_steps: Annotated[int, Field(ge=1)]
    """Longest episode of the training split."""
    collision_penalty: Annotated[FiniteFloat, Field(ge=1)] | None
    """lambda_coll; None where collisions could not be seen, and so do not count."""
    failure_penalty: Annotated[FiniteFloat, Field(ge=1)]
    """lambda_fail."""
    expert_mean: FiniteFloat
    expert_std: Annotated[FiniteFloat, Field(ge=0)]
    raw_mean: FiniteFloat
    raw_std: Annotated[FiniteFloat, Field(ge=0)]
    n_train: Annotated[int, Field(ge=1)]
    raters: tuple[str, ...]
    seed: int

    @model_validator(mode="after")
    def _fits(self) -> Grade:
        missing = {"velocity", "acceleration"} & set(self.weights) - set(self.quantiles)
        if missing or sum(self.weights.values()) <= 0:
            message = f"no weight above 0, or no quantiles for {', '.join(sorted(missing))}"
            raise ValueError(message)
        return self

    def indicators(self, one: Measured) -> dict[str, float | None]:
        """Return s_i in [0, 1], larger = better, of each indicator in use.

        Steadiness by the training split's quantiles, see :func:`steadiness`; times as
        ``1 - steps / horizon``, at least 0. A task that was not solved took all of the horizon.
        """
        found: dict[str, float | None] = {}
        for name in self.weights:
            value = one.of[name]
            if name in self.quantiles:
                table = self.quantiles[name]
                found[name] = None if value is None else steadiness(value, table)
                continue
            found[name] = None if value is None else max(0.0, 1.0 - value / self.horizon_steps)
        return found

    def penalty(self, one: Measured) -> float | None:
        """Return eta: 1, or the penalties' product; None where what it needs is unknown."""
        eta = self.failure_penalty if one.failed else 1.0
        if self.collision_penalty is None:
            return eta
        if one.collisions is None:
            return None
        return eta * self.collision_penalty if one.collisions else eta

    def penalised(self, one: Measured) -> list[float] | None:
        """Return s_i' in the order of the weights; None where something is unknown, or an error."""
        eta, known = self.penalty(one), list(self.indicators(one).values())
        if eta is None or one.outcome == "error":
            return None
        return [value / eta for value in known if value is not None] if None not in known else None

    def raw(self, one: Measured) -> float | None:
        """Return S_raw."""
        parts = self.penalised(one)
        if parts is None:
            return None
        weights = list(self.weights.values())
        return float(np.dot(weights, parts) / sum(weights))

    def score(self, one: Measured) -> float | None:
        """Return S_RG, on the experts' scale but not cut to its ends."""
        raw = self.raw(one)
        if raw is None:
            return None
        return self.expert_mean + self.expert_std * (raw - self.raw_mean) / (self.raw_std + EPSILON)

    def check(self, run: Run) -> None:
        """Check that a run may be graded: variances per step mean the same only on the same robot.

        Raises:
            CalibrationError: another robot or control period.
        """
        given = setup(run)
        if given != (self.robot, self.control_dt_s):
            msg = (
                f"{run.path} is of robot {given[0]} at {given[1]} s a step, the grade was fitted "
                f"on {self.robot} at {self.control_dt_s} s; fit one for it: `vlawatch grade RUN "
                "--experts scores.csv`"
            )
            raise CalibrationError(msg)

    def save(self, path: Path) -> None:
        """Write as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path | str) -> Grade:
        """Read a file that :meth:`save` wrote.

        Raises:
            CalibrationError: the file is missing, is not JSON or does not fit the schema.
        """
        path = Path(path)
        try:
            return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, ValidationError) as error:
            msg = f"cannot use grade {path}: {error}; make one with `vlawatch grade RUN --experts`"
            raise CalibrationError(msg) from error


def setup(run: Run) -> tuple[str | None, float | None]:
    """Return the robot's name and the control period, seconds, each None where a run has none."""
    robot, env = run.header.get("robot"), run.header.get("env") or {}
    return (robot.get("name") if isinstance(robot, Mapping) else None), env.get("control_dt_s")


def steadiness(value: float, quantiles: Sequence[float]) -> float:
    """Share of the training split with a larger variance, ties half: 1 is steadier than all.

    Linear between the quantiles, so that it is a distribution function that a table can hold.

    Args:
        value: U_v or U_alpha.
        quantiles: ``(21,)`` at :data:`LEVELS`.

    >>> steadiness(5.0, [float(i) for i in range(21)])
    0.75
    """
    places, at = np.unique(np.asarray(quantiles, dtype=np.float64), return_inverse=True)
    levels = np.bincount(at, weights=np.asarray(LEVELS)) / np.bincount(at)
    if value < places[0]:
        return 1.0
    if value > places[-1]:
        return 0.0
    return 1.0 - float(np.interp(value, places, levels))
