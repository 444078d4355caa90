"""Execution quality of a rollout from its joint positions.

U_v and U_alpha, the variances that a rollout's least steady joint has in velocity and
acceleration, and mu_v, the mean speed; after the kinematic indicators of the evaluation-agent work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.records import FloatArray

__all__ = ["Execution", "judge_execution"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Execution quality of one rollout; per step, not per second.

    Attributes:
        u_v: largest over the joints of the variance of q_t - q_{t-1}.
        u_alpha: the same of the change of that.
        mu_v: mean over steps and joints of |q_t - q_{t-1}|.
        tool_path_m: way of the tool; None where its place is not always known.
    """

    u_v: float
    u_alpha: float
    mu_v: float
    tool_path_m: float | None


def judge_execution(
    joints: Sequence[Sequence[float] | None], places: Sequence[Sequence[float] | None]
) -> Execution | None:
    """Judge a rollout.

    Args:
        joints: ``(T, J)`` joint positions by step, radians or metres.
        places: ``(T, 3)`` of the tool by step, metres.

    Returns:
        None where a step's joints are unknown, or there are fewer than three steps.

    >>> judge_execution([[0.0], [1.0], [2.0], [3.0]], [None] * 4)
    Execution(u_v=0.0, u_alpha=0.0, mu_v=1.0, tool_path_m=None)
    """
    rows = _rows(joints)
    if rows is None or len(rows) < 3:
        return None
    velocity = np.diff(rows, axis=0)
    acceleration = np.diff(velocity, axis=0)
    way = _rows(places)
    path = None
    if way is not None:
        path = float(np.linalg.norm(np.diff(way, axis=0), axis=1).sum())
    return Execution(
        u_v=float(velocity.var(axis=0).max()),
        u_alpha=float(acceleration.var(axis=0).max()),
        mu_v=float(np.abs(velocity).mean()),
        tool_path_m=path,
    )


def _rows(given: Sequence[Sequence[float] | None]) -> FloatArray | None:
    """Return the rows as one array, None where one is missing or of another form."""
    try:
        rows = np.array(given, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError):
        return None
    return rows if rows.ndim == 2 and rows.size and np.isfinite(rows).all() else None
