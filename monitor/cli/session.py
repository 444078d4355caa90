"""Environment, policy and monitor as the options of a command name them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monitor.calibration import Calibration
from monitor.config import MonitorConfig, config_folder, load_config
from monitor.errors import ConfigError
from monitor.pipeline import Monitor

__all__ = [
    "check_disturbance",
    "find_calibration",
    "make_monitor",
    "one_thread",
    "open_env",
    "open_policy",
    "with_switches",
]

log = logging.getLogger("vlawatch")


def one_thread() -> None:
    """Keep OpenMP to one thread unless the user says otherwise.

    More threads fight the software renderer's own: the simulator then runs at a third of its
    speed. It must be set before torch is imported.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def open_env(name: str, **kwargs: Any) -> Any:
    """Make an environment.

    Raises:
        ConfigError: if there is none of this name.
    """
    from envs import list_envs, make_env

    if name not in list_envs():
        from monitor.errors import unknown_name

        msg = unknown_name("environment", name, list_envs())
        raise ConfigError(msg)
    log.info("starting environment %s", name)
    return make_env(name, **kwargs)


def check_disturbance(env: Any, name: str) -> None:
    """Refuse a disturbance that the environment says it does not have.

    Raises:
        ConfigError: the environment lists its disturbances and this is none of them.
    """
    known = getattr(env.unwrapped, "disturbances", None)
    if known is not None and name not in known:
        from monitor.errors import unknown_name

        raise ConfigError(unknown_name("disturbance", name, known))


def open_policy(name: str, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
    """Load a policy with the arguments that were given; also return those.

    Raises:
        ConfigError: if there is none of this name.
    """
    from policies import load_policy

    given = {key: value for key, value in kwargs.items() if value is not None}
    log.info("loading policy %s", name)
    return load_policy(name, **given), given


def make_monitor(
    env: Any,
    *,
    config: str,
    calibration: Path | None,
    policy_name: str,
    env_name: str,
    switches: Mapping[str, bool],
) -> Monitor:
    """Make the monitor for an environment and a policy.

    Args:
        env: asked for its action space and control period.
        config: shipped name or path of a YAML file.
        calibration: file; None takes the one that the configuration names, if it names one.
        policy_name: for the configuration's choice.
        env_name: for the configuration's choice.
        switches: as :func:`with_switches` takes them.
    """
    settings = with_switches(load_config(config), **switches)
    period = getattr(env.unwrapped, "control_dt_s", None)
    if period is not None and period != settings.control_dt_s:
        log.warning(
            "the configuration says control_dt_s %g, the environment runs at %g; using the latter",
            settings.control_dt_s,
            period,
        )
        settings = settings.model_copy(update={"control_dt_s": float(period)})
    task = getattr(env.unwrapped, "task", None)
    fitted = find_calibration(
        settings,
        source=config,
        given=calibration,
        policy_name=policy_name,
        env_name=env_name,
        task=task if isinstance(task, str) else None,
    )
    space = env.action_space
    return Monitor(settings, action_low=space.low, action_high=space.high, calibration=fitted)


def find_calibration(
    config: MonitorConfig,
    *,
    source: str,
    given: Path | None,
    policy_name: str,
    env_name: str,
    task: str | None,
) -> Calibration | None:
    """Read the calibration of a policy in an environment; say so where there is none that fits.

    Args:
        config: of the monitor; it may name a file.
        source: where the configuration was read from, for files named relative to it.
        given: file that the user named instead.
        policy_name: name of the policy.
        env_name: name of the environment.
        task: key of the task, where it is known.
    """
    named = config.calibration_for(policy_name, env_name, task)
    path = given if given is not None else _beside(named, source)
    if path is None:
        log.warning(
            "uncalibrated: no calibration for %s on %s; the score uses reference values",
            policy_name,
            env_name,
        )
        return None
    return Calibration.load(path)


def with_switches(config: MonitorConfig, *, enforce: bool, recovery: bool) -> MonitorConfig:
    """A configuration with the two switches of the command line put on top.

    Args:
        config: as read.
        enforce: false only watches.
        recovery: false sends no retreat.
    """
    update: dict[str, Any] = {}
    if not enforce:
        update["controller"] = config.controller.model_copy(update={"enforce": False})
    if not recovery:
        update["recovery"] = config.recovery.model_copy(update={"enabled": False})
    return config.model_copy(update=update)


def _beside(named: str | None, config: str) -> Path | None:
    """Path of a file that a configuration names: as it stands, beside it, or among the shipped."""
    if named is None:
        return None
    for folder in (Path(), Path(config).parent, config_folder()):
        if (folder / named).is_file():
            return folder / named
    msg = f"the monitor configuration {config!r} names calibration {named!r}, which does not exist"
    raise ConfigError(msg)
