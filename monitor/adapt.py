"""A configuration made to fit: what environment and policy say of themselves, where it says nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from monitor.config import FaultsConfig, GripperConfig, MonitorConfig
from monitor.records import FloatArray

__all__ = ["adapt_config"]

log = logging.getLogger(__name__)


def adapt_config(config: MonitorConfig, env: Any, policy: Any = None) -> MonitorConfig:
    """Return the configuration for a policy in an environment.

    - ``control_dt_s`` is the environment's, whatever the configuration says.
    - ``robot.gripper.open``, ``close`` and ``relative`` follow the environment's ``robot``, where
      the configuration leaves them out: a retreat that opens one robot's gripper closes another's.
    - ``faults.unnorm_limits`` is the least of the action space and of what policy and environment
      call usual (``usual_translation``, metres), where the configuration leaves it out and one of
      the two says so.

    Args:
        config: as read.
        env: asked for ``action_space``, ``control_dt_s``, ``robot``, ``usual_translation``.
        policy: asked for ``usual_translation``.
    """
    world = getattr(env, "unwrapped", env)
    update: dict[str, Any] = {
        "robot": config.robot.model_copy(
            update={"gripper": _gripper(config.robot.gripper, getattr(world, "robot", None))}
        ),
        "faults": _limits(
            config.faults,
            env.action_space,
            [getattr(one, "usual_translation", None) for one in (policy, world)],
        ),
    }
    period = getattr(world, "control_dt_s", None)
    if period is not None and not _positive(period):
        log.warning("the environment's control_dt_s is %r; keeping %g", period, config.control_dt_s)
    elif period is not None and period != config.control_dt_s:
        if "control_dt_s" in config.model_fields_set:
            log.warning(
                "the configuration says control_dt_s %g, the environment runs at %g; using the "
                "latter",
                config.control_dt_s,
                period,
            )
        update["control_dt_s"] = float(period)
    return config.model_copy(update=update)


def _gripper(config: GripperConfig, robot: Any) -> GripperConfig:
    sign = getattr(robot, "open_sign", None)
    if sign is None:
        return config
    kind = getattr(robot, "gripper", None)
    ends = {"open": float(sign), "close": -float(sign)}
    given = [name for name in ends if name in config.model_fields_set]
    update: dict[str, Any] = {name: end for name, end in ends.items() if name not in given}
    for name, end in update.items():
        # Two ends that are one open and close nothing.
        if any(end == getattr(config, other) for other in given):
            update[name] = -end
    if "relative" not in config.model_fields_set:
        update["relative"] = getattr(kind, "value", kind) == "relative"
    return config.model_copy(update=update)


def _limits(
    config: FaultsConfig, space: Any, told: Sequence[Sequence[float] | None]
) -> FaultsConfig:
    if "unnorm_limits" in config.model_fields_set or not hasattr(space, "low"):
        return config
    ends = np.maximum(np.abs(space.low), np.abs(space.high)).astype(np.float64).reshape(-1)[:3]
    known = [usual for one in told if (usual := _usual(one, len(ends))) is not None]
    if not known:
        return config
    limits = np.minimum.reduce([ends, *known])
    return config.model_copy(update={"unnorm_limits": tuple(limits.tolist())})


def _usual(told: Any, count: int) -> FloatArray | None:
    """Return the first ``count`` of what is said to be usual; None where it is no such thing."""
    if told is None:
        return None
    try:
        values = np.asarray(told, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape == (3,) and (np.isfinite(values) & (values > 0.0)).all():
        return values[:count]
    log.warning("usual_translation is %r, expected 3 positive numbers of metres: not used", told)
    return None


def _positive(value: Any) -> bool:
    try:
        return bool(0.0 < float(value) < np.inf)
    except (TypeError, ValueError):
        return False
