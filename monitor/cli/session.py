"""Environment, policy and monitor, made as the options of a command say."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monitor.adapt import adapt_config
from monitor.calibration import Calibration
from monitor.cli.names import check_env_name
from monitor.cli.options import pairs
from monitor.config import MonitorConfig, config_folder, load_config
from monitor.env_api import action_bounds
from monitor.errors import ConfigError, EnvStartError, MonitorError
from monitor.metrics.probe_file import ProbeFile
from monitor.pipeline import Monitor

if TYPE_CHECKING:
    from monitor.cli.groups import MonitorOptions
    from monitor.rollout import EpisodeSpec
    from monitor.rollout.preflight.startup import StartReport

__all__ = [
    "EnvHost",
    "find_calibration",
    "make_monitor",
    "one_thread",
    "open_env",
    "open_policy",
    "policy_arguments",
    "start_check",
    "with_switches",
]

log = logging.getLogger("vlawatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvHost:
    """The environment's own process.

    Attributes:
        python: interpreter; None is this one.
        deadline_s: step timeout, seconds.
    """

    python: str | None
    deadline_s: float

    @classmethod
    def chosen(cls, python: str | None, *, isolate: bool, deadline_s: float) -> EnvHost | None:
        """Return what the options say; None where the environment runs in this process."""
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
        host: process that it runs in; None is this one.
        **kwargs: arguments of the environment.

    Raises:
        ConfigError: this Python knows none of this name; another Python may know others.
        EnvStartError: the simulator did not start, for example without a Vulkan driver.
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
    missing = [one for one in ("reset", "step", "action_space") if not hasattr(made, one)]
    if missing:
        msg = (
            f"--env {name} makes a {type(made).__name__} without {', '.join(missing)}; expected a "
            "gymnasium.Env"
        )
        raise ConfigError(msg)
    return made


def open_policy(name: str, arguments: Mapping[str, Any]) -> Any:
    """Load a policy.

    Args:
        name: as in ``vlawatch policies``.
        arguments: arguments of the policy.

    Raises:
        ConfigError: there is none of this name, or it does not take these arguments.
    """
    from policies import load_policy

    log.info("loading policy %s", name)
    return load_policy(name, **arguments)


def policy_arguments(given: list[str] | None) -> dict[str, Any]:
    """Return the arguments of ``--policy-arg``, each value read as YAML.

    >>> policy_arguments(["samples=4"])
    {'samples': 4}

    Raises:
        ConfigError: one is not ``NAME=VALUE``, or its value is not YAML.
    """
    return {name: _yaml(name, text) for name, text in pairs(given, "--policy-arg").items()}


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
    names: tuple[str, str],
    chosen: MonitorOptions,
    enforce: bool,
    recovery: bool,
) -> Monitor:
    """Make the monitor for an environment and a policy.

    Args:
        env: environment, asked for its action space and for what :func:`adapt_config` reads.
        policy: policy that acts, asked for what :func:`adapt_config` reads.
        names: names of policy and environment, for the choice of a calibration.
        chosen: configuration and calibration.
        enforce: False only watches.
        recovery: False sends no retreat.
    """
    low, high = action_bounds(env)
    config = with_switches(load_config(chosen.monitor), enforce=enforce, recovery=recovery)
    config = adapt_config(config, env, policy)
    policy_name = getattr(policy, "served", None) or names[0]
    _check_probe(config.metrics.safe, policy, policy_name)
    task = getattr(env.unwrapped, "task", None)
    fitted = find_calibration(
        config,
        chosen,
        policy_name=policy_name,
        env_name=names[1],
        task=task if isinstance(task, str) else None,
    )
    return Monitor(config, action_low=low, action_high=high, calibration=fitted)


def start_check(env: Any, policy: Any, spec: EpisodeSpec, monitor: Monitor) -> StartReport:
    """Check before step 0 that policy and environment fit; log what is merely odd.

    Raises:
        MonitorError: they do not fit, or the policy does not respond to the image.
    """
    from monitor.rollout.preflight.startup import check_start

    report = check_start(env, policy, spec, limits=monitor.config.faults.unnorm_limits)
    if report.contract:
        found = " · ".join(f"{name} {text}" for name, text in report.contract.items())
        log.info("start check: %s", found)
    for one in report.findings:
        if not one.refuses:
            log.warning("%s: %s", one.code, one.message)
    if report.skipped:
        log.warning("the check before step 0 is not complete: %s", report.skipped)
    report.require()
    return report


def _check_probe(path: str | None, policy: Any, policy_name: str) -> None:
    """Log where a SAFE probe gets no features, or was trained on another policy."""
    if path is None:
        return
    trained = ProbeFile.load(path).header.policy
    if "hidden" not in getattr(policy, "signals", ()):
        log.warning("%s provides no features, so SAFE stays unknown", policy_name)
    elif trained != policy_name:
        log.warning("the probe %s was trained on %s, not on %s", path, trained, policy_name)


def find_calibration(
    config: MonitorConfig,
    chosen: MonitorOptions,
    *,
    policy_name: str,
    env_name: str,
    task: str | None = None,
) -> Calibration | None:
    """Return the calibration of a policy in an environment; log where there is none that fits.

    Args:
        config: configuration of the monitor; it may name a file.
        chosen: where the configuration was read from, and the file that the user named instead.
        policy_name: name of the policy.
        env_name: name of the environment.
        task: key of the task, where it is known.

    Raises:
        ConfigError: the configuration names a file that does not exist.
        CalibrationError: the file cannot be read.
    """
    named = config.calibration_for(policy_name, env_name, task)
    given = chosen.calibration
    path = given if given is not None else _resolved(named, chosen.monitor)
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
    """Return a configuration with the two switches of the command line applied.

    Args:
        config: configuration as read.
        enforce: False only watches.
        recovery: False sends no retreat.
    """
    update: dict[str, Any] = {}
    if not enforce:
        update["controller"] = config.controller.model_copy(update={"enforce": False})
    if not recovery:
        update["recovery"] = config.recovery.model_copy(update={"enabled": False})
    return config.model_copy(update=update)


def _resolved(named: str | None, config: str) -> Path | None:
    """Return the path of a named file: as given, next to the configuration, or shipped."""
    if named is None:
        return None
    for folder in (Path(), Path(config).parent, config_folder()):
        if (folder / named).is_file():
            return folder / named
    msg = f"the monitor configuration {config!r} names calibration {named!r}, which does not exist"
    raise ConfigError(msg)
