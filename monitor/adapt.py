"""Fill in what a configuration leaves out with what environment and policy declare."""

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

    - ``control_dt_s`` is the environment's, even if the configuration gives another.
    - ``robot.gripper.open``, ``close`` and ``relative`` follow the environment's ``robot`` where
      the configuration leaves them out: a retreat that opens one robot's gripper closes another's.
    - ``faults.unnorm_limits`` is the least of the action space and of the usual translations that
      policy and environment declare, where the configuration leaves it out and one of them does.

    Args:
        config: configuration as read.
        env: environment, whose ``action_space``, ``control_dt_s``, ``robot`` and
            ``translation_q99_m`` (metres) are read.
        policy: policy, whose ``translation_q99_m`` (metres) is read.
    """
    bare = getattr(env, "unwrapped", env)
    update: dict[str, Any] = {
        "robot": config.robot.model_copy(
            update={"gripper": _gripper(config.robot.gripper, getattr(bare, "robot", None))}
        ),
        "faults": _limits(
            config.faults,
            env.action_space,
            [getattr(one, "translation_q99_m", None) for one in (policy, bare)],
        ),
    }
    period = getattr(bare, "control_dt_s", None)
    if period is not None and not _positive(period):
        log.warning("the environment's control_dt_s is %r; keeping %g", period, config.control_dt_s)
    elif period is not None and period != config.control_dt_s:
        if "control_dt_s" in config.model_fields_set:
            log.warning(
                "control_dt_s is %g in the configuration and %g in the environment; using the "
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
        # A gripper whose two commands are equal can neither open nor close.
        if any(end == getattr(config, other) for other in given):
            update[name] = -end
    if "relative" not in config.model_fields_set:
        update["relative"] = getattr(kind, "value", kind) == "relative"
    return config.model_copy(update=update)


def _limits(
    config: FaultsConfig, space: Any, declared: Sequence[Sequence[float] | None]
) -> FaultsConfig:
    if "unnorm_limits" in config.model_fields_set or not hasattr(space, "low"):
        return config
    ends = np.maximum(np.abs(space.low), np.abs(space.high)).astype(np.float64).reshape(-1)[:3]
    known = [usual for one in declared if (usual := _usual(one, len(ends))) is not None]
    if not known:
        return config
    limits = np.minimum.reduce([ends, *known])
    return config.model_copy(update={"unnorm_limits": tuple(limits.tolist())})


def _usual(declared: Any, count: int) -> FloatArray | None:
    """Return the first ``count`` usual translations; None if they are not three such numbers."""
    if declared is None:
        return None
    try:
        values = np.asarray(declared, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape == (3,) and (np.isfinite(values) & (values > 0.0)).all():
        return values[:count]
    log.warning("translation_q99_m is %r, not 3 positive numbers in metres: not used", declared)
    return None


def _positive(value: Any) -> bool:
    try:
        return bool(0.0 < float(value) < np.inf)
    except (TypeError, ValueError):
        return False
