"""A probe from runs: network, band, and how both do on episodes that neither was fitted on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from monitor.errors import CalibrationError, ConfigError, unknown_name
from monitor.metrics.probe_file import ProbeFile, ProbeHeader
from monitor.metrics.safe import failure_curve
from monitor.records import FloatArray
from monitor.study.runs import Run
from monitor.study.safe.data import Labelled, Split, deal, read_labelled
from monitor.study.safe.judge import SafeProbeReport, judge
from monitor.study.safe.train import Training, train
from monitor.study.statistics.conformal import episodes_needed, functional_band

__all__ = ["FitResult", "fit_band", "fit_safe_probe"]

FEWEST: Final = 2
"""Failures on each side of the split, without which nothing can be learned or reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitResult:
    """What came of a fit.

    Attributes:
        probe: ready to be saved.
        report: report on the held-out episodes.
    """

    probe: ProbeFile
    report: SafeProbeReport

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON for scripts."""
        return {"probe": self.probe.header.model_dump(mode="json"), **self.report.to_json()}

    def to_text(self) -> str:
        """Return it as text for people."""
        header = self.probe.header
        return (
            f"probe of {header.policy} on {header.env}: {header.features} features, trained on "
            f"{header.n_train} episodes; band of {header.horizon} steps from {header.n_band} "
            f"successes, alpha {header.alpha:g}\n\n{self.report.to_text()}"
        )


def fit_safe_probe(
    runs: Sequence[Path | str],
    alpha: float = 0.1,
    training: Training | None = None,
    *,
    unseen: Collection[str] = (),
) -> FitResult:
    """Train a probe on half of the scenes, fit its band on a quarter, judge it on what is left.

    Record the runs with ``vlawatch run --keep-hidden --watch-only``, clean and disturbed ones: it
    learns from failures too.

    Args:
        runs: folders, all of one policy in one environment.
        alpha: promised rate of successful episodes that leave the band.
        training: settings of the training; None takes the defaults.
        unseen: kinds of disturbance that only judge: does it hear failures of kinds not met?

    Raises:
        CalibrationError: no features, too few failures, or too few successes for ``alpha``.
        MissingExtraError: torch is not installed.
    """
    training = Training() if training is None else training
    loaded = [Run.load(run) for run in runs]
    episodes = read_labelled(loaded)
    _check_kinds(episodes, unseen)
    parts = deal(episodes, training.seed, unseen)
    _check(episodes, parts, alpha)
    network = train(parts.train, training)
    size = episodes[0].features.shape[1]
    header = ProbeHeader(
        policy=loaded[0].policy,
        env=loaded[0].env,
        features=size,
        units=training.units,
        horizon=1,
        alpha=alpha,
        n_train=len(parts.train),
        n_band=sum(not one.failed for one in parts.band),
        training={name: float(value) for name, value in asdict(training).items()},
        revision=(loaded[0].header.get("git") or {}).get("commit"),
        created_from=tuple(run.path.name for run in loaded),
    )
    layers = {name: getattr(network, name) for name in ("weight_1", "bias_1", "weight_2", "bias_2")}
    bare = ProbeFile(header=header, **layers, band=np.zeros(1))
    curves = [failure_curve(bare, one.features) for one in parts.band if not one.failed]
    band = fit_band(curves, alpha)
    whole = header.model_copy(update={"horizon": len(band)})
    probe = ProbeFile(header=whole, **layers, band=band)
    return FitResult(probe=probe, report=judge(probe, parts, seed=training.seed))


def fit_band(curves: Sequence[FloatArray], alpha: float) -> FloatArray:
    """Band over scores of different lengths; one that has ended stays at its last value.

    Unlike the public code, which takes a plain quantile for its one-sided band, the width is the
    conformal rank, so that the promise holds at any number of episodes.

    Args:
        curves: ``(T_i,)`` one a successful episode.
        alpha: promised rate of those that leave it.

    Returns:
        ``(T,)`` of the longest.
    """
    longest = max(len(one) for one in curves)
    padded = [np.pad(one, (0, longest - len(one)), mode="edge") for one in curves]
    return functional_band(np.stack(padded), alpha)


def _check_kinds(episodes: Sequence[Labelled], unseen: Collection[str]) -> None:
    known = {one.disturbance for one in episodes if one.disturbance is not None}
    for kind in unseen:
        if kind not in known:
            raise ConfigError(unknown_name("disturbance in these runs", kind, known))


def _check(episodes: Sequence[Labelled], parts: Split, alpha: float) -> None:
    failures = [sum(one.failed for one in part) for part in (parts.train, parts.held_out)]
    if min(failures) < FEWEST:
        msg = (
            f"{sum(failures)} failures among {len(episodes)} episodes with features: {failures[0]} "
            f"to train on and {failures[1]} to judge by, at least {FEWEST} of each are needed; "
            "record disturbed scenes too (`vlawatch run --disturbance NAME`)"
        )
        raise CalibrationError(msg)
    have = sum(not one.failed for one in parts.band)
    need = 2 * episodes_needed(alpha) - 1
    if have < need:
        msg = (
            f"{have} successful episodes are left for the band, alpha {alpha:g} needs {need}: "
            f"record about {4 * (need - have)} more (a quarter of the scenes goes to the band), "
            "or allow a larger alpha"
        )
        raise CalibrationError(msg)
    solved = [sum(not one.failed for one in part) for part in (parts.train, parts.rest)]
    if min(solved) < FEWEST:
        msg = f"{solved[0]} successful episodes to train on and {solved[1]} to judge by are too few"
        raise CalibrationError(msg)
