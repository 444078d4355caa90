"""How a probe does on episodes that it was not fitted on, compared with the monitor's own score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from monitor.jsonable import jsonable
from monitor.metrics.probe_file import ProbeFile
from monitor.metrics.safe import failure_curve
from monitor.records import FloatArray
from monitor.study.safe.data import Labelled, Split
from monitor.study.statistics.detection import PREFIXES, Auroc, auroc, bootstrap_auroc, prefix_peak
from monitor.study.statistics.intervals import Rate, wilson

__all__ = ["Alarms", "Comparison", "SafeProbeReport", "judge"]

DRAWS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """AUROC of probe and score on the same episodes.

    Attributes:
        scenes: "all", "clean", "disturbed", or "unseen and clean".
        steps: first steps that both may use; None is the whole episode.
        safe: AUROC of the probe.
        score: AUROC of the monitor's score.
        gain_low: lower end of the 95 % interval of ``safe - score``, episodes drawn in pairs.
        gain_high: upper end.
    """

    scenes: str
    steps: int | None
    safe: Auroc
    score: Auroc
    gain_low: float
    gain_high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """What alarms where.

    Attributes:
        false: successes alarmed, of those that the band was not fitted on.
        caught: failures alarmed, of those that the network was not trained on.
        unseen: failures alarmed, of the kinds kept out; None without such.
        median_step: median step of the alarm in those failures, None without one.
    """

    false: Rate
    caught: Rate
    unseen: Rate | None
    median_step: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeProbeReport:
    """Held-out figures of a probe.

    Attributes:
        comparisons: comparisons by scenes and prefix.
        band: alarms where SAFE leaves its band.
        threshold: alarms of the score at its threshold, on the same episodes.
    """

    comparisons: Sequence[Comparison]
    band: Alarms
    threshold: Alarms

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON for scripts."""
        content: dict[str, Any] = jsonable(self)
        return content

    def to_text(self) -> str:
        """Return two Markdown tables."""
        lines = [
            "| held-out episodes | first steps | failed | AUROC of SAFE | AUROC of the score "
            "| difference |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| {one.scenes} | {one.steps or 'all'} "
            f"| {one.safe.n_failure} of {one.safe.n_failure + one.safe.n_success} "
            f"| {one.safe.to_text()} | {one.score.to_text()} "
            f"| {one.safe.value - one.score.value:+.2f} "
            f"({one.gain_low:+.2f} to {one.gain_high:+.2f}) |"
            for one in self.comparisons
        ]
        lines += [
            "",
            "| alarm | false alarms on successes | failures alarmed | median step of the alarm "
            "| failures of unseen kinds alarmed |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| {name} | {one.false.to_text()} | {one.caught.to_text()} "
            f"| {'none' if one.median_step is None else f'{one.median_step:g}'} "
            f"| {'–' if one.unseen is None else one.unseen.to_text()} |"
            for name, one in (("SAFE above its band", self.band), ("score", self.threshold))
        ]
        return "\n".join(lines)


def judge(probe: ProbeFile, parts: Split, seed: int = 0) -> SafeProbeReport:
    """Judge a probe.

    Args:
        probe: trained on ``parts.train``, its band fitted on the successes of ``parts.band``.
        parts: part of each episode.
        seed: seed of the bootstrap.
    """
    judged = [*parts.held_out, *parts.unseen]
    curves = {id(one): failure_curve(probe, one.features) for one in judged}
    clean = [one for one in parts.held_out if one.disturbance is None]
    views: Mapping[str, list[Labelled]] = {
        "all": parts.held_out,
        "clean": clean,
        "disturbed": [one for one in parts.held_out if one.disturbance is not None],
        "unseen and clean": [*parts.unseen, *clean] if parts.unseen else [],
    }
    compared = [
        found
        for name, view in views.items()
        if name == "all" or len(clean) < len(parts.held_out)
        for steps in (None, *PREFIXES)
        if (found := _compare(name, steps, view, curves, seed)) is not None
    ]
    band = {
        key: _first(curve[: len(probe.band)] > probe.band[: len(curve)])
        for key, curve in curves.items()
    }
    own = {
        id(one): _first([score is not None and score >= one.tau for score in one.scores])
        for one in judged
    }
    return SafeProbeReport(
        comparisons=compared, band=_alarms(parts, band), threshold=_alarms(parts, own)
    )


def _compare(
    name: str,
    steps: int | None,
    view: Sequence[Labelled],
    curves: Mapping[int, FloatArray],
    seed: int,
) -> Comparison | None:
    """None where an outcome is missing."""
    good = [one for one in view if not one.failed]
    bad = [one for one in view if one.failed]
    # The curve never falls, so its last value is its peak; a score not yet known raises no alarm.
    safe = [[float(curves[id(one)][:steps][-1]) for one in group] for group in (good, bad)]
    score = [[prefix_peak(one.scores, steps) or 0.0 for one in group] for group in (good, bad)]
    probed = bootstrap_auroc(*safe, seed=seed, draws=DRAWS)
    scored = bootstrap_auroc(*score, seed=seed, draws=DRAWS)
    if probed is None or scored is None:
        return None
    gains = list(_gains([np.array(one) for one in safe], [np.array(one) for one in score], seed))
    low, high = np.quantile(gains, [0.025, 0.975])
    return Comparison(
        scenes=name,
        steps=steps,
        safe=probed,
        score=scored,
        gain_low=float(low),
        gain_high=float(high),
    )


def _gains(safe: Sequence[FloatArray], score: Sequence[FloatArray], seed: int) -> Iterator[float]:
    """Return the differences of the two AUROCs over the same drawn episodes."""
    rng = np.random.default_rng(seed)
    for _ in range(DRAWS):
        good, bad = (rng.integers(one.size, size=one.size) for one in safe)
        one, other = (auroc(values[0][good], values[1][bad]) for values in (safe, score))
        if one is not None and other is not None:
            yield one - other


def _alarms(parts: Split, first: Mapping[int, int | None]) -> Alarms:
    solved = [first[id(one)] for one in parts.rest if not one.failed]
    failed = [first[id(one)] for one in parts.held_out if one.failed]
    steps = [at for at in failed if at is not None]
    return Alarms(
        false=wilson(sum(at is not None for at in solved), len(solved)),
        caught=wilson(len(steps), len(failed)),
        unseen=_caught(parts.unseen, first) if parts.unseen else None,
        median_step=float(np.median(steps)) if steps else None,
    )


def _caught(episodes: Sequence[Labelled], first: Mapping[int, int | None]) -> Rate:
    failed = [first[id(one)] is not None for one in episodes if one.failed]
    return wilson(sum(failed), len(failed))


def _first(above: Any) -> int | None:
    """Return the place of the first true value."""
    found = np.flatnonzero(np.asarray(above, dtype=bool))
    return int(found[0]) if found.size else None
