"""The content of ``run.json``: everything needed to know what was run and to run it again."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from monitor.env_api import action_bounds
from monitor.pipeline import Monitor
from monitor.rollout.records import EpisodeSpec
from monitor.thresholds import threshold_header

__all__ = ["run_header"]

METRIC_LAG_STEPS: Final[Mapping[str, int]] = {"TI": 2}
"""Metrics whose value belongs to an earlier step: a third derivative needs later steps."""

_PACKAGES: Final = (
    "vlawatch",
    "numpy",
    "pydantic",
    "torch",
    "transformers",
    "gymnasium",
    "mani-skill",
    "sapien",
)


def run_header(
    *,
    env_name: str,
    env: Any,
    policy_name: str,
    monitor: Monitor,
    specs: Sequence[EpisodeSpec],
    env_kwargs: Mapping[str, Any] | None = None,
    policy_kwargs: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Make the content of ``run.json``.

    Args:
        env_name: name given to ``make_env``.
        env: environment; its action space and control period are recorded.
        policy_name: name given to ``load_policy``.
        monitor: monitor; its configuration and calibration are recorded in full, so that a replay
            needs no other file.
        specs: every episode of the run.
        env_kwargs: arguments of the environment.
        policy_kwargs: arguments of the policy.
        seed: random seed of the policy.
    """
    low, high = action_bounds(env)
    calibration = monitor.calibration
    return {
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "env": {
            "name": env_name,
            "kwargs": dict(env_kwargs or {}),
            "control_dt_s": getattr(env.unwrapped, "control_dt_s", None),
            "action_low": low,
            "action_high": high,
        },
        "robot": _robot(env),
        "env_host": getattr(env, "host", None),
        "policy": {"name": policy_name, "kwargs": dict(policy_kwargs or {})},
        "monitor": monitor.config.model_dump(mode="json"),
        "metric_lag_steps": dict(METRIC_LAG_STEPS),
        "plugin_metrics": {info.id: asdict(info) for info in monitor.plugin_metrics},
        **threshold_header(monitor.config.controller, calibration),
        "calibration": None if calibration is None else calibration.model_dump(mode="json"),
        "seed": seed,
        "episodes": [
            {"scene": spec.scene, "seed": spec.seed, "options": dict(spec.options)}
            for spec in specs
        ],
        "versions": {"python": platform.python_version(), **_versions()},
        "git": _git_revision(),
    }


def _robot(env: Any) -> dict[str, Any] | None:
    """Return the robot's name and the bodies that belong to it, if the environment has them."""
    robot = getattr(env.unwrapped, "robot", None)
    found = {key: getattr(robot, key, None) for key in ("name", "links", "fingers")}
    return found if isinstance(found["name"], str) else None


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def _git_revision() -> dict[str, Any] | None:
    """Return the commit of this checkout and whether tracked files were changed."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD")
        changed = bool(_git(root, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "changed": changed}


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()
