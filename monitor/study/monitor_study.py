"""The study of a policy and its monitor by one call: rollouts, calibration, findings.

Each arm is an ordinary run folder under the study's folder, so a study that is killed goes on where
it stopped, and every figure can be made again from the traces alone:

``calibration/``  clean scenes, watching (only where scenes are named to calibrate on)
``watch-clean/``, ``watch-disturbed/``  the monitor scores and alerts and never acts
``act-clean/``, ``act-disturbed/``  the same scenes with recovery and halt
``calibration.json``, ``study.json``, ``study.md``
"""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, final

from monitor.adapt import adapt_config
from monitor.calibration import Calibration
from monitor.config import MonitorConfig
from monitor.env_api import action_bounds
from monitor.errors import ConfigError
from monitor.jsonable import dumps
from monitor.parent_death import PARENT_PID, end_with_parent
from monitor.pipeline import Monitor
from monitor.rollout import (
    EpisodeResult,
    EpisodeSpec,
    EpisodeStart,
    RunFiles,
    StepRecord,
    run_episodes,
    run_header,
)
from monitor.rollout.recorders.hidden import HiddenRecorder
from monitor.study.calibration.calibrate import calibrate
from monitor.study.findings import Findings, findings
from monitor.study.runs import Run
from monitor.study.summary import build_summary

__all__ = ["KINDS", "StudyConfig", "StudyResult", "run_monitor_study"]

log = logging.getLogger(__name__)

KINDS: Final = (
    "object_pushed",
    "object_removed",
    "camera_shifted",
    "lights_changed",
    "unseen_colour",
    "action_noise",
    "action_delay",
)
"""Disturbances of the embedded environments; disturbed scenes take them in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyConfig:
    """What to study.

    Attributes:
        out: folder of the study; what is already in it is not run again.
        env: name of the environment.
        policy: name of the policy.
        clean: scenes run as they are.
        disturbed: scenes of which each gets one of ``kinds`` in turn.
        kinds: disturbances, in turn.
        config: configuration of the monitor; its two switches are set by arm.
        calibration: None scores by reference quantiles, unless ``calibrate_on`` has scenes.
        calibrate_on: scenes to fit a calibration on first, apart from all others.
        alpha: promised rate of false alarms, for ``calibrate_on``.
        acting: run the second pass, in which the monitor acts.
        env_kwargs: arguments of the environment.
        policy_kwargs: arguments of the policy.
        seed: seed of every episode.
        max_steps: largest number of steps per episode.
        jobs: arms that run at the same time, each in its own process.
        keep_hidden: keep the policy's features of every step next to the traces.
    """

    out: Path
    env: str
    policy: str
    clean: Sequence[int]
    disturbed: Sequence[int] = ()
    kinds: Sequence[str] = KINDS
    config: MonitorConfig = field(default_factory=MonitorConfig)
    calibration: Calibration | None = None
    calibrate_on: Sequence[int] = ()
    alpha: float = 0.1
    acting: bool = True
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    policy_kwargs: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    max_steps: int | None = None
    jobs: int = 1
    keep_hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """What came of a study.

    Attributes:
        findings: findings on the finished episodes.
        complete: every arm ran to its end; False after Ctrl-C.
        folders: run folder by arm.
        calibration: calibration in force.
    """

    findings: Findings
    complete: bool
    folders: Mapping[str, Path]
    calibration: Calibration | None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON for scripts."""
        return {
            "complete": self.complete,
            "folders": {name: str(path) for name, path in self.folders.items()},
            **self.findings.to_json(),
        }

    def to_text(self) -> str:
        """Tables for people."""
        return self.findings.to_text() + ("" if self.complete else "\n\nNOT COMPLETE: interrupted")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arm:
    name: str
    specs: Sequence[EpisodeSpec]
    act: bool = False


Makers = tuple[Callable[[], Any], Callable[[], Any]]


def run_monitor_study(study: StudyConfig, makers: Makers | None = None) -> StudyResult:
    """Run a study, or what is missing of it.

    Args:
        study: configuration of the study.
        makers: make environment and policy; None makes them by the names in ``study``. They must
            be picklable for ``study.jobs > 1``.

    Raises:
        ConfigError: scenes overlap, or there are none.
        CalibrationError: too few successes among ``calibrate_on``.
        TraceError: the folder holds a study with another configuration.
    """
    _check(study)
    makers = _by_name(study) if makers is None else makers
    calibration = study.calibration
    complete = True
    folders = {}
    if study.calibrate_on:
        arm = _Arm(name="calibration", specs=_specs(study, study.calibrate_on))
        complete = _run_arm(study, arm, None, makers)
        folders[arm.name] = study.out / arm.name
        calibration = calibrate([folders[arm.name]], study.alpha)
        calibration.save(study.out / "calibration.json")
    arms = [
        _Arm(name=f"{prefix}-{scenes}", specs=specs, act=act)
        for prefix, act in (("watch", False), ("act", True))
        if study.acting or not act
        for scenes, specs in (
            ("clean", _specs(study, study.clean)),
            ("disturbed", _specs(study, study.disturbed, study.kinds)),
        )
        if specs
    ]
    if complete:
        complete = _run_arms(study, arms, calibration, makers)
    found = {arm.name: study.out / arm.name for arm in arms}
    folders.update({name: path for name, path in found.items() if path.exists()})
    runs = {name: Run.load(path) for name, path in folders.items()}
    result = StudyResult(
        findings=findings(
            [run for name, run in runs.items() if name.startswith("watch-")],
            [run for name, run in runs.items() if name.startswith("act-")],
        ),
        complete=complete,
        folders=folders,
        calibration=calibration,
    )
    (study.out / "study.json").write_text(
        dumps(result.to_json(), indent=2) + "\n", encoding="utf-8"
    )
    (study.out / "study.md").write_text(result.to_text() + "\n", encoding="utf-8")
    return result


def _run_arms(
    study: StudyConfig, arms: Sequence[_Arm], calibration: Calibration | None, makers: Makers
) -> bool:
    if study.jobs == 1:
        # Not in a generator: an interrupted arm ends the study, the next must not start.
        return all(_run_arm(study, arm, calibration, makers) for arm in arms)
    # Spawned, because a fork copies the simulator's threads in whatever state they are.
    with ProcessPoolExecutor(
        min(study.jobs, len(arms)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_process,
        initargs=(os.getpid(),),
    ) as pool:
        done = [pool.submit(_run_arm, study, arm, calibration, makers) for arm in arms]
        return all([future.result() for future in done])


def _run_arm(
    study: StudyConfig, arm: _Arm, calibration: Calibration | None, makers: Makers
) -> bool:
    """Run one arm, or what is missing of it; False if it was interrupted."""
    make_env, make_policy = makers
    env, policy = make_env(), make_policy()
    try:
        low, high = action_bounds(env)
        controller = study.config.controller.model_copy(update={"enforce": arm.act})
        monitor = Monitor(
            adapt_config(study.config.model_copy(update={"controller": controller}), env, policy),
            action_low=low,
            action_high=high,
            calibration=calibration,
        )
        header = run_header(
            env_name=study.env,
            env=env,
            policy_name=study.policy,
            monitor=monitor,
            specs=arm.specs,
            env_kwargs=study.env_kwargs,
            policy_kwargs=study.policy_kwargs,
            seed=study.seed,
        )
        swept = run_episodes(
            env,
            policy,
            monitor,
            arm.specs,
            files=RunFiles(
                folder=study.out / arm.name,
                header=header,
                resume=True,
                retry_errors=True,
                summarise=build_summary,
            ),
            observers=[
                _EpisodeLogger(arm.name, len(arm.specs)),
                *([HiddenRecorder(study.out / arm.name)] if study.keep_hidden else []),
            ],
            remake=make_env,
            max_steps=study.max_steps,
        )
    finally:
        env.close()
    return not swept.interrupted


@final
class _EpisodeLogger:
    """Log one line per episode."""

    def __init__(self, arm: str, count: int) -> None:
        self._arm, self._count = arm, count

    def on_start(self, start: EpisodeStart) -> None:
        """Ignore the start of an episode."""

    def on_step(self, record: StepRecord) -> None:
        """Ignore a step."""

    def on_end(self, result: EpisodeResult) -> None:
        """Log the outcome of an episode."""
        place = f"{self._arm} {result.episode + 1}/{self._count}"
        log.info("%s: scene %d %s", place, result.scene, result.outcome)


def _specs(
    study: StudyConfig, scenes: Sequence[int], kinds: Sequence[str] = ()
) -> list[EpisodeSpec]:
    def options(place: int) -> dict[str, str]:
        return {"disturbance": kinds[place % len(kinds)]} if kinds else {}

    return [
        EpisodeSpec(scene=scene, seed=study.seed, options=options(place))
        for place, scene in enumerate(scenes)
    ]


def _check(study: StudyConfig) -> None:
    if not study.clean and not study.disturbed:
        msg = "no scenes to study; name clean or disturbed ones"
        raise ConfigError(msg)
    if study.disturbed and not study.kinds:
        msg = "disturbed scenes need at least one kind of disturbance"
        raise ConfigError(msg)
    shared = set(study.calibrate_on) & {*study.clean, *study.disturbed}
    if shared:
        msg = (
            f"scenes {sorted(shared)[:5]} are to be calibrated on and to be studied; the promised "
            "rate holds on unseen scenes, so keep them apart"
        )
        raise ConfigError(msg)
    if study.jobs < 1:
        msg = f"jobs {study.jobs}: at least 1"
        raise ConfigError(msg)


def _by_name(study: StudyConfig) -> Makers:
    return (
        partial(_make_env, study.env, dict(study.env_kwargs)),
        partial(_make_policy, study.policy, dict(study.policy_kwargs)),
    )


def _make_env(name: str, kwargs: Mapping[str, Any]) -> Any:
    from envs import make_env

    return make_env(name, **kwargs)


def _make_policy(name: str, kwargs: Mapping[str, Any]) -> Any:
    from policies import load_policy

    return load_policy(name, **kwargs)


def _start_process(parent: int) -> None:
    """Allow one thread, before torch is imported in the process, and log to stderr."""
    os.environ[PARENT_PID] = str(parent)
    end_with_parent()
    os.environ["OMP_NUM_THREADS"] = "1"
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("monitor").setLevel(logging.INFO)
