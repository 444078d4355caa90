"""What a monitor was worth on a set of runs: detection while watching, outcomes while acting.

A monitor that acts changes the outcome it is judged by. So detection is read from runs in which it
only watched, and its effect from a second pass over the same scenes in which it acted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from monitor.jsonable import jsonable
from monitor.study.runs import Episode, Run
from monitor.study.statistics.intervals import Paired, Rate, mcnemar_exact, wilson
from monitor.study.summary import detection

__all__ = ["Effect", "Findings", "Watched", "findings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One group of episodes under a monitor that only watched.

    Attributes:
        episodes: all of them.
        errors: without a verdict.
        pass_rate: solved at the end, of those with a verdict.
        false_alarms: solved ones in which the score reached the threshold; alpha is about these.
        false_alerts: solved ones with an alert of any kind, also from a fault.
        alarmed: failed ones in which the score reached the threshold.
        alerted: failed ones with an alert of any kind.
        lead_steps: median and quartiles of the steps from a failure's first alert to its end.
        detection: AUROC of the peak score with its interval, whole and over equal first steps;
            None when one class is empty.
    """

    episodes: int
    errors: int
    pass_rate: Rate
    false_alarms: Rate
    false_alerts: Rate
    alarmed: Rate
    alerted: Rate
    lead_steps: Mapping[str, float] | None
    detection: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The same scenes with the monitor watching and with it acting.

    Attributes:
        off: solved while it watched.
        on: solved while it acted; a halted episode is not solved.
        halted: halted while it acted.
        halted_failures: share halted among those that failed while it watched.
        halted_successes: share halted among those that were solved while it watched.
        change: scenes gained and lost, with the exact McNemar test.
    """

    off: Rate
    on: Rate
    halted: int
    halted_failures: Rate
    halted_successes: Rate
    change: Paired


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Groups by name: ``clean``, ``disturbed``, each kind of disturbance, ``all``."""

    calibrated: bool
    alpha: float | None
    tau_recover: float
    watched: Mapping[str, Watched]
    effect: Mapping[str, Effect]

    def to_json(self) -> dict[str, Any]:
        """For scripts and ``study.json``."""
        content: dict[str, Any] = jsonable(self)
        return content

    def to_text(self) -> str:
        """Return two Markdown tables, ready for a README."""
        promise = f"calibrated, alpha {self.alpha:g}" if self.calibrated else "UNCALIBRATED"
        lines = [
            f"Monitor watching only ({promise}, threshold {self.tau_recover:.3f}):",
            "",
            "| scenes | solved at end | false alarms on successes | with any alert "
            "| failures alarmed | with any alert | steps before the end | AUROC of peak score |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_watched_row(name, group) for name, group in self.watched.items()),
        ]
        prefixes = [
            f"{name}: " + ", ".join(_prefixes(group.detection))
            for name, group in self.watched.items()
            if group.detection is not None and name in ("clean", "disturbed", "all")
        ]
        if prefixes:
            lines += ["", "AUROC over equal first steps: " + "; ".join(prefixes) + "."]
        if self.effect:
            lines += [
                "",
                "Same scenes, monitor watching against monitor acting (retreat, then halt):",
                "",
                "| scenes | solved, watching | solved, acting | gained | lost | p (McNemar) "
                "| failures halted | successes halted |",
                "| --- | --- | --- | --- | --- | --- | --- | --- |",
                *(_effect_row(name, effect) for name, effect in self.effect.items()),
            ]
        return "\n".join(lines)


def findings(watching: Sequence[Run], acting: Sequence[Run] = ()) -> Findings:
    """Study some runs.

    Args:
        watching: runs of a monitor that never acted.
        acting: runs over the same scenes in which it did.
    """
    first = watching[0]
    calibration = first.calibration
    tau = first.tau_recover
    episodes = [one for run in watching for one in run.episodes]
    again = {_key(one): one for run in acting for one in run.episodes}
    groups = _groups(episodes)
    pairs = {
        name: [(one, again[_key(one)]) for one in group if _key(one) in again]
        for name, group in groups.items()
    }
    return Findings(
        calibrated=calibration is not None,
        alpha=None if calibration is None else calibration.alpha,
        tau_recover=tau,
        watched={name: _watched(group, tau) for name, group in groups.items()},
        effect={name: _effect(pair) for name, pair in pairs.items() if pair},
    )


def _groups(episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
    clean = [one for one in episodes if one.disturbance is None]
    disturbed = [one for one in episodes if one.disturbance is not None]
    kinds = sorted({str(one.disturbance) for one in disturbed})
    groups = {
        "clean": clean,
        "disturbed": disturbed,
        **{kind: [one for one in disturbed if one.disturbance == kind] for kind in kinds},
        "all": list(episodes),
    }
    return {name: group for name, group in groups.items() if group}


def _watched(episodes: Sequence[Episode], tau: float) -> Watched:
    solved = [one for one in episodes if one.outcome == "success"]
    failed = [one for one in episodes if one.outcome == "failure"]
    leads = [one.length - one.first_alert for one in failed if one.first_alert is not None]
    return Watched(
        episodes=len(episodes),
        errors=sum(one.outcome == "error" for one in episodes),
        pass_rate=wilson(len(solved), len(solved) + len(failed)),
        false_alarms=_alarmed(solved, tau),
        false_alerts=_alerted(solved),
        alarmed=_alarmed(failed, tau),
        alerted=_alerted(failed),
        lead_steps=_quartiles(leads),
        detection=detection([*solved, *failed]),
    )


def _effect(pairs: Sequence[tuple[Episode, Episode]]) -> Effect:
    scored = [(a, b) for a, b in pairs if a.outcome in _VERDICTS and b.outcome in _VERDICTS]
    off = [a.outcome == "success" for a, _ in scored]
    on = [b.outcome == "success" for _, b in scored]
    halted = [b.outcome == "halted" for _, b in scored]
    return Effect(
        off=wilson(sum(off), len(off)),
        on=wilson(sum(on), len(on)),
        halted=sum(halted),
        halted_failures=_share(h for h, solved in zip(halted, off, strict=True) if not solved),
        halted_successes=_share(h for h, solved in zip(halted, off, strict=True) if solved),
        change=mcnemar_exact(off, on),
    )


_VERDICTS = ("success", "failure", "halted")
"""An error says nothing about the monitor; a halt is its doing."""


def _key(episode: Episode) -> tuple[Any, ...]:
    record = episode.record
    return (episode.scene, record.get("seed"), str(sorted((record.get("options") or {}).items())))


def _alarmed(episodes: Iterable[Episode], tau: float) -> Rate:
    return _share(one.first_alarm(tau) is not None for one in episodes)


def _alerted(episodes: Iterable[Episode]) -> Rate:
    return _share(one.first_alert is not None for one in episodes)


def _share(flags: Iterable[bool]) -> Rate:
    known = list(flags)
    return wilson(sum(known), len(known))


def _quartiles(values: Sequence[int]) -> dict[str, float] | None:
    if not values:
        return None
    low, median, high = np.quantile(np.asarray(values, dtype=np.float64), [0.25, 0.5, 0.75])
    return {"median": float(median), "q25": float(low), "q75": float(high)}


def _watched_row(name: str, group: Watched) -> str:
    lead = group.lead_steps
    steps = (
        "–" if lead is None else f"{lead['median']:.0f} ({lead['q25']:.0f} to {lead['q75']:.0f})"
    )
    cells = [
        name,
        group.pass_rate.to_text(),
        group.false_alarms.to_text(),
        group.false_alerts.to_text(),
        group.alarmed.to_text(),
        group.alerted.to_text(),
        steps,
        _auroc(group.detection),
    ]
    return f"| {' | '.join(cells)} |"


def _effect_row(name: str, effect: Effect) -> str:
    cells = [
        name,
        effect.off.to_text(),
        effect.on.to_text(),
        str(effect.change.gained),
        str(effect.change.lost),
        f"{effect.change.p_value:.3g}",
        effect.halted_failures.to_text(),
        effect.halted_successes.to_text(),
    ]
    return f"| {' | '.join(cells)} |"


def _auroc(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "–"
    return f"{found['auroc']:.2f} ({found['low']:.2f} to {found['high']:.2f})"


def _prefixes(found: Mapping[str, Any]) -> list[str]:
    shown = [
        f"{steps} steps {_auroc(one)}"
        for steps, one in found["prefixes"].items()
        if one is not None
    ]
    alarm = found["at_alarm"]
    if alarm is not None:
        shown.append(f"up to the alarm, {alarm['steps']} steps, {_auroc(alarm)}")
    return shown
