"""A configuration made to fit: what environment and policy say of themselves, where it says nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from monitor.config import FaultsConfig, MonitorConfig, RecoveryConfig

__all__ = ["fit_config"]

log = logging.getLogger(__name__)


def fit_config(config: MonitorConfig, env: Any, policy: Any = None) -> MonitorConfig:
    """Return the configuration for a policy in an environment.

    - ``control_dt_s`` is the environment's, whatever the configuration says.
    - ``recovery.gripper_open``, ``gripper_close`` and ``gripper_relative`` follow the environment's
      ``robot``, where the configuration leaves them out: a retreat that opens one robot's gripper
      closes another's.
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
        "recovery": _gripper(config.recovery, getattr(world, "robot", None)),
        "faults": _limits(
            config.faults,
            env.action_space,
            [getattr(one, "usual_translation", None) for one in (policy, world)],
        ),
    }
    period = getattr(world, "control_dt_s", None)
    if period is not None and period != config.control_dt_s:
        if "control_dt_s" in config.model_fields_set:
            log.warning(
                "the configuration says control_dt_s %g, the environment runs at %g; using the "
                "latter",
                config.control_dt_s,
                period,
            )
        update["control_dt_s"] = float(period)
    return config.model_copy(update=update)


def _gripper(config: RecoveryConfig, robot: Any) -> RecoveryConfig:
    sign = getattr(robot, "open_sign", None)
    if sign is None:
        return config
    kind = getattr(robot, "gripper", None)
    told = {
        "gripper_open": float(sign),
        "gripper_close": -float(sign),
        "gripper_relative": getattr(kind, "value", kind) == "relative",
    }
    left = {name: value for name, value in told.items() if name not in config.model_fields_set}
    return config.model_copy(update=left)


def _limits(
    config: FaultsConfig, space: Any, told: Sequence[Sequence[float] | None]
) -> FaultsConfig:
    known = [one for one in told if one is not None]
    if config.unnorm_limits is not None or not known:
        return config
    ends = np.maximum(np.abs(space.low), np.abs(space.high)).astype(np.float64).reshape(-1)[:3]
    limits = np.minimum.reduce([ends, *(np.asarray(one, dtype=np.float64) for one in known)])
    return config.model_copy(update={"unnorm_limits": tuple(limits.tolist())})
