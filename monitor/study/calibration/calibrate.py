"""Fit a calibration: how signals look in successful rollouts, and thresholds with a promise.

Successful, undisturbed episodes are dealt out alternately: one half gives the tail tables of the
signals, the other, which those tables have never seen, the peak scores for the thresholds (split
conformal). Scores come from ``Monitor.replay`` of the recorded evidence, so fitting and
running share every line of code. Tables hold the steps before the first success: an arm that has
finished rests, and its calm would make any working arm look strange.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import log as ln
from pathlib import Path
from typing import Any, Final

import numpy as np

from monitor.calibration import Calibration, FilterNoise, TailTable
from monitor.catalogue import CATALOGUE
from monitor.config import ControllerConfig, MonitorConfig
from monitor.errors import CalibrationError
from monitor.scoring.surprise import reference_tables
from monitor.study.calibration.noise import fit_noise
from monitor.study.replay import decide_again
from monitor.study.runs import Episode, Run
from monitor.study.statistics.conformal import conformal_threshold, episodes_needed

__all__ = ["HALT_SHARE", "NEVER", "calibrate", "tail_table"]

log = logging.getLogger(__name__)

HALT_SHARE: Final = 0.2
"""The halting threshold promises this share of alpha: stopping costs more than asking again."""
NEVER: Final = 2.0
"""A threshold that no score reaches, where there are too few episodes for one."""
LEVELS: Final = (0.0, *np.linspace(0.05, 0.95, 19).round(2).tolist(), 0.97, 0.98, 0.99)
FEW_STEPS: Final = 200
"""With fewer steps the 99 % quantile is the largest value; the table then ends at 90 %."""


def calibrate(
    runs: Sequence[Path | str],
    alpha: float = 0.1,
    *,
    config: MonitorConfig | None = None,
    noise: bool = False,
) -> Calibration:
    """Fit tail tables and thresholds on the successful, undisturbed episodes of some runs.

    Record them with ``vlawatch run --watch-only``: an episode in which the monitor stepped in
    does not show how far its score would have risen.

    Args:
        runs: folders, all of one policy in one environment.
        alpha: promised rate of false alarms on successful episodes.
        config: what shapes the score; None takes the runs' own, which must then agree.
        noise: fit the distance filter's noises too, on the episodes of the tables.

    Raises:
        CalibrationError: too few successes (says how many more), mixed runs, an episode twice.
    """
    loaded = [Run.load(run) for run in runs]
    _check_same(loaded, own_config=config is None)
    usable = [(run, one) for run in loaded for one in run.of("success") if one.disturbance is None]
    _check_once(usable)
    tails, thresholds = usable[1::2], usable[0::2]
    _check_enough(len(usable), alpha)
    _warn_touched([one for _, one in usable])
    first = loaded[0]
    settings = _watching(first.config if config is None else config)
    fitted_noise = fit_noise(_distances(tails), settings.belief) if noise else None
    signals = _tables(tails, _with_noise(settings, fitted_noise))
    tasks = {one.record.get("task") for _, one in usable}
    fitted = Calibration(
        policy=first.policy,
        env=first.env,
        task=tasks.pop() if len(tasks) == 1 else None,
        alpha=alpha,
        n_success=len(usable),
        tau_recover=NEVER,
        tau_halt=NEVER,
        signals=signals,
        noise=fitted_noise,
        created_from=(*_origin("tables", tails), *_origin("thresholds", thresholds)),
        config_hash=settings.score_hash(),
    )
    peaks = [_peak(run, one, settings, fitted) for run, one in thresholds]
    tau = conformal_threshold(peaks, alpha)
    rare = alpha * HALT_SHARE
    enough = len(peaks) >= episodes_needed(rare)
    halt = conformal_threshold(peaks, rare) if enough else NEVER
    return fitted.model_copy(update={"tau_recover": tau, "tau_halt": max(tau, halt)})


def _distances(episodes: Sequence[tuple[Run, Episode]]) -> list[list[float | None]]:
    return [[step.get("goal_distance") for step in one.steps] for _, one in episodes]


def _with_noise(settings: MonitorConfig, noise: FilterNoise | None) -> MonitorConfig:
    """The same settings with a filter of this noise."""
    if noise is None:
        return settings
    belief = settings.belief.model_copy(update=noise.model_dump())
    return settings.model_copy(update={"belief": belief})


def tail_table(values: Sequence[float], floor: float = 1e-9) -> TailTable:
    """Return the quantiles of a signal and the mean excess beyond the last of them.

    Args:
        values: one per step.
        floor: least ``tail_scale``: a signal that never moved must not alarm at a hair.

    >>> tail_table(list(range(101))).values[:3]
    (0.0, 5.0, 10.0)
    """
    array = np.sort(np.asarray(values, dtype=np.float64))
    levels = LEVELS if array.size >= FEW_STEPS else tuple(one for one in LEVELS if one <= 0.9)
    quantiles = np.quantile(array, levels, method="inverted_cdf")
    excess = array[array > quantiles[-1]] - quantiles[-1]
    scale = float(excess.mean()) if excess.size else 0.0
    return TailTable(levels=levels, values=tuple(quantiles.tolist()), tail_scale=max(scale, floor))


def _tables(
    episodes: Sequence[tuple[Run, Episode]], settings: MonitorConfig
) -> dict[str, TailTable]:
    """Return the tail table of every weighted signal that the episodes ever show."""
    names = [name for name, weight in settings.score.signals.items() if weight > 0]
    seen: dict[str, list[float]] = {name: [] for name in names}
    for run, episode in episodes:
        monitor = run.monitor(settings)
        for decision in decide_again(monitor, episode.steps):
            if decision.evidence.success:
                break
            for name in names:
                value = decision.metrics.get(name)
                if value is not None:
                    seen[name].append(value)
    return {
        name: tail_table(values, floor=_floor(name, values))
        for name, values in seen.items()
        if values
    }


def _floor(name: str, values: Sequence[float]) -> float:
    """A tenth of the reference tail, or of an exponential with this signal's mean."""
    reference = reference_tables(CATALOGUE)
    if name in reference:
        return 0.1 * reference[name].tail_scale
    return max(0.1 * float(np.mean(np.abs(values))) / ln(10.0), 1e-9)


def _peak(run: Run, episode: Episode, settings: MonitorConfig, fitted: Calibration) -> float:
    """Return the largest score of an episode under the new tables; 0 where none was ever known."""
    monitor = run.monitor(settings, fitted)
    scores = [one.score for one in decide_again(monitor, episode.steps)]
    return max((score for score in scores if score is not None), default=0.0)


def _watching(config: MonitorConfig) -> MonitorConfig:
    """The same score under a monitor that never steps in, so that nothing is forgotten midway."""
    controller = ControllerConfig(enforce=False, tau_recover=NEVER, tau_halt=NEVER)
    return config.model_copy(update={"controller": controller})


def _touched(episode: Episode) -> bool:
    """Return whether an action other than the wanted one was sent."""
    return any(
        step["mode"] != "TASK" and step.get("sent") != step.get("action") for step in episode.steps
    )


def _origin(use: str, episodes: Sequence[tuple[Run, Episode]]) -> list[str]:
    """Return lines such as ``tables: runs/a episodes 1, 3``."""
    by_run: dict[str, list[int]] = {}
    for run, one in episodes:
        by_run.setdefault(run.path.name, []).append(one.number)
    return [
        f"{use}: {name} episodes {', '.join(map(str, numbers))}" for name, numbers in by_run.items()
    ]


def _check_same(runs: Sequence[Run], *, own_config: bool) -> None:
    if not runs:
        msg = "no runs given; name the folders of runs on clean scenes"
        raise CalibrationError(msg)
    for key in ("policy", "env"):
        parts: list[Any] = [run.header.get(key) for run in runs]
        for run, part in zip(runs[1:], parts[1:], strict=True):
            if part != parts[0]:
                msg = (
                    f"{run.path} has another {key} than {runs[0].path}: {part} and {parts[0]}; "
                    "a calibration is of one policy in one environment, so make one for each"
                )
                raise CalibrationError(msg)
    hashes = {run.config.score_hash() for run in runs}
    if own_config and len(hashes) > 1:
        msg = "the runs were scored by different configurations; say which one with `config`"
        raise CalibrationError(msg)


def _check_enough(usable: int, alpha: float) -> None:
    missing = 2 * episodes_needed(alpha) - 1 - usable
    if missing > 0:
        msg = (
            f"alpha {alpha:g} needs {usable + missing} successful undisturbed episodes, half "
            f"for the thresholds and half for the signals' tables; found {usable}: record "
            f"{missing} more, or allow a larger alpha"
        )
        raise CalibrationError(msg)


def _warn_touched(episodes: Sequence[Episode]) -> None:
    touched = sum(map(_touched, episodes))
    if touched:
        log.warning(
            "in %d of %d episodes the monitor stepped in, so their scores are cut short; record "
            "with --watch-only for a promise that holds",
            touched,
            len(episodes),
        )


def _check_once(usable: Sequence[tuple[Run, Episode]]) -> None:
    """The same scene twice is one observation, not two."""
    seen: dict[tuple[Any, ...], str] = {}
    for run, one in usable:
        key = (one.scene, one.record.get("seed"), str(one.record.get("options")))
        place = f"{run.path} episode {one.number}"
        if key in seen:
            msg = (
                f"scene {one.scene} with the same seed and options is in {seen[key]} and in "
                f"{place}; give every scene once, or the promised rate does not hold"
            )
            raise CalibrationError(msg)
        seen[key] = place
