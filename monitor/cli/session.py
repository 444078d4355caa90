"""Environment, policy and monitor as the options of a command name them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.adapt import adapt_config
from monitor.calibration import Calibration
from monitor.cli.names import check_env_name
from monitor.cli.options import pairs
from monitor.config import MonitorConfig, config_folder, load_config
from monitor.env_api import action_bounds
from monitor.errors import ConfigError, EnvStartError, MonitorError
from monitor.metrics.probe_file import ProbeFile
from monitor.pipeline import Monitor

__all__ = [
    "EnvHost",
    "find_calibration",
    "make_monitor",
    "one_thread",
    "open_env",
    "open_policy",
    "with_switches",
]

log = logging.getLogger("vlawatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvHost:
    """A process of its own for the environment.

    Attributes:
        python: interpreter; None is this one.
        deadline_s: longest time of a step.
    """

    python: str | None
    deadline_s: float

    @classmethod
    def chosen(cls, python: str | None, *, isolate: bool, deadline_s: float) -> EnvHost | None:
        """What the options of a command say; None where the environment shall be in process."""
        if python is None and not isolate:
            return None
        return cls(python=python, deadline_s=deadline_s)

    def open(self, name: str, kwargs: Mapping[str, Any]) -> Any:
        """Start the process and make the environment there."""
        from envs.host.hosted import Deadlines, HostedEnv

        deadlines = Deadlines.of_step(self.deadline_s)
        return HostedEnv(name, kwargs, python=self.python, deadlines=deadlines)


def one_thread() -> None:
    """Keep OpenMP to one thread unless the user says otherwise.

    More threads fight the software renderer's own: the simulator then runs at a third of its
    speed. It must be set before torch is imported.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def open_env(name: str, host: EnvHost | None = None, **kwargs: Any) -> Any:
    """Make an environment.

    Args:
        name: as in ``vlawatch envs``, or ``package.module:Class``.
        host: the process that shall hold it; None is this one.
        **kwargs: arguments of the environment.

    Raises:
        ConfigError: if there is none of this name here; another Python may know others.
        EnvStartError: if the simulator did not start, for example without a Vulkan driver.
    """
    from envs import make_env
    from envs.host.errors import EnvRaisedError

    elsewhere = host is not None and host.python is not None
    if not elsewhere:
        check_env_name(name)
    log.info("starting environment %s%s", name, f" in {host.python}" if host and elsewhere else "")
    try:
        made = make_env(name, **kwargs) if host is None else host.open(name, kwargs)
    except RuntimeError as error:  # as simulators report what their machine lacks
        if isinstance(error, MonitorError) and not isinstance(error, EnvRaisedError):
            raise
        msg = f"environment {name} did not start: {error}"
        raise EnvStartError(msg) from error
    lacking = [one for one in ("reset", "step", "action_space") if not hasattr(made, one)]
    if lacking:
        msg = f"--env {name} makes a {type(made).__name__} without {', '.join(lacking)}; expected a gymnasium.Env"
        raise ConfigError(msg)
    return made


def open_policy(
    name: str, further: list[str] | None = None, **kwargs: Any
) -> tuple[Any, dict[str, Any]]:
    """Load a policy with the arguments that were given; also return those.

    Args:
        name: as in ``vlawatch policies``.
        further: arguments as ``NAME=VALUE``, the value read as YAML.
        **kwargs: arguments; None is none.

    Raises:
        ConfigError: if there is none of this name, or an argument cannot be read.
    """
    from policies import load_policy

    given = {key: value for key, value in kwargs.items() if value is not None}
    for key, text in pairs(further, "--policy-arg").items():
        given[key] = _yaml(key, text)
    log.info("loading policy %s", name)
    return load_policy(name, **given), given


def _yaml(name: str, text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        msg = f"--policy-arg {name}: {text!r} is not YAML: {error}"
        raise ConfigError(msg) from error


def make_monitor(
    env: Any,
    policy: Any,
    *,
    config: str,
    calibration: Path | None,
    policy_name: str,
    env_name: str,
    switches: Mapping[str, bool],
) -> Monitor:
    """Make the monitor for an environment and a policy.

    Args:
        env: asked for its action space, and with the policy for what :func:`adapt_config` takes.
        policy: that acts.
        config: shipped name or path of a YAML file.
        calibration: file; None takes the one that the configuration names, if it names one.
        policy_name: for the configuration's choice.
        env_name: for the configuration's choice.
        switches: as :func:`with_switches` takes them.
    """
    low, high = action_bounds(env)
    settings = adapt_config(with_switches(load_config(config), **switches), env, policy)
    _check_probe(settings.metrics.safe, policy, policy_name)
    task = getattr(env.unwrapped, "task", None)
    fitted = find_calibration(
        settings,
        source=config,
        given=calibration,
        policy_name=policy_name,
        env_name=env_name,
        task=task if isinstance(task, str) else None,
    )
    return Monitor(settings, action_low=low, action_high=high, calibration=fitted)


def _check_probe(path: str | None, policy: Any, policy_name: str) -> None:
    """Say so where a probe has nothing to look at, or was trained on another policy."""
    if path is None:
        return
    trained = ProbeFile.load(path).header.policy
    if "hidden" not in getattr(policy, "signals", ()):
        log.warning("%s gives no features, so that SAFE stays unknown", policy_name)
    elif trained != policy_name:
        log.warning("the probe %s was trained on %s, not on %s", path, trained, policy_name)


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
    fitted = Calibration.load(path)
    shipped = given is None and "calibrations" not in config.model_fields_set
    if shipped and fitted.config_hash != config.score_hash():
        log.warning(
            "uncalibrated: the shipped calibration of %s on %s was fitted with another "
            "configuration of the score; the score uses reference values",
            policy_name,
            env_name,
        )
        return None
    return fitted


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
