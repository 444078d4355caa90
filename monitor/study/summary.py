"""``summary.json``: what a run came to; rebuildable from the trace at any time.

Numpy only, because it is made at the end of every run. Errors and halts are never failures of the
policy: the pass rate counts episodes that ran to their end, and a conservative line next to it
counts every episode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from monitor.study.quality.judge import judge_run, sum_up
from monitor.study.runs import OUTCOMES, Episode, Run
from monitor.study.statistics.detection import PREFIXES, bootstrap_auroc, prefix_peak
from monitor.study.statistics.intervals import wilson
from monitor.trace import RunFolder

__all__ = ["build_summary", "detection", "summarise"]


def build_summary(run: RunFolder) -> dict[str, Any]:
    """Return the content of ``summary.json`` for a run folder.

    Keys beyond the contract's: ``no_data`` (nothing was completed), ``unfinished`` (killed
    half-way), ``success_at_reset`` (solved before anything moved; these say nothing about the
    policy, ``pass_rate_unsolved`` leaves them out), ``conservative_rate`` (errors and halts
    counted against the policy), ``lead_steps`` (from the first alert of a failure to its end),
    ``calibrated``, ``faults`` (episodes by code), ``by_disturbance``, ``benchmark_rate`` (the
    published criterion: ``benchmark_success`` of the last info of completed episodes; None where
    the environment gives none), ``execution`` and ``safety`` (see
    :mod:`monitor.study.quality.judge`; None where the trace holds no joints, no objects).
    """
    return summarise(Run.load(run))


def summarise(run: Run) -> dict[str, Any]:
    """Return the summary of a run that is already read."""
    episodes = run.episodes
    by_outcome = Counter(episode.outcome for episode in episodes)
    completed = run.of("success", "failure")
    passed = by_outcome["success"]
    unsolved = [one for one in completed if not one.record.get("success_at_reset")]
    failures = run.of("failure")
    steps = [step for episode in episodes for step in episode.steps]
    wall_s = sum(float(episode.record.get("wall_s") or 0.0) for episode in episodes)
    count = sum(episode.length for episode in episodes)
    return {
        "episodes": len(episodes),
        "planned": len(run.header.get("episodes") or episodes),
        "unfinished": len(run.unfinished),
        "completed": len(completed),
        "no_data": not completed,
        "success_at_end": _count(completed, "success_at_end"),
        "success_once": _count(completed, "success_once"),
        "success_at_reset": _count(episodes, "success_at_reset"),
        "errors": by_outcome["error"],
        "halted": by_outcome["halted"],
        "outcomes": {name: by_outcome[name] for name in OUTCOMES},
        "pass_rate": wilson(passed, len(completed)).to_json(),
        "pass_rate_unsolved": wilson(
            sum(one.outcome == "success" for one in unsolved), len(unsolved)
        ).to_json(),
        "benchmark_rate": _benchmark_rate(completed),
        "conservative_rate": wilson(passed, len(episodes)).to_json(),
        "alerts": sum(episode.first_alert is not None for episode in episodes),
        "false_alarms": sum(one.first_alert is not None for one in run.of("success")),
        "missed_failures": sum(one.first_alert is None for one in failures),
        "lead_steps": _spread(
            one.length - one.first_alert for one in failures if one.first_alert is not None
        ),
        "detection": detection(completed),
        "calibrated": run.header.get("calibration") is not None,
        "faults": _faults(episodes),
        **sum_up(judge_run(run)),
        "by_disturbance": _by_disturbance(completed),
        "overhead_us": _spread(step.get("overhead_us") for step in steps),
        "policy_ms": _spread(step.get("policy_ms") for step in steps),
        "steps_per_s": count / wall_s if count and wall_s > 0 else None,
    }


def detection(episodes: Sequence[Episode], *, draws: int = 1000) -> dict[str, Any] | None:
    """AUROC of the peak score, over whole episodes and over equal first steps.

    Args:
        episodes: solved and failed ones; those without a score are left out.
        draws: draws of the bootstrap.

    Returns:
        None when one class is empty.
    """
    whole = _auroc(episodes, None, draws)
    if whole is None:
        return None
    prefixes = {str(steps): _auroc(episodes, steps, draws) for steps in PREFIXES}
    return {**whole, "prefixes": prefixes, "at_alarm": _at_alarm(episodes, draws)}


def _at_alarm(episodes: Sequence[Episode], draws: int) -> dict[str, Any] | None:
    """The same over the first steps up to the median first alert of the failures."""
    alerts = [
        one.first_alert
        for one in episodes
        if one.outcome == "failure" and one.first_alert is not None
    ]
    if not alerts:
        return None
    steps = int(np.median(alerts)) + 1
    found = _auroc(episodes, steps, draws)
    return None if found is None else {"steps": steps, **found}


def _auroc(episodes: Sequence[Episode], steps: int | None, draws: int) -> dict[str, Any] | None:
    peaks: dict[str, list[float]] = {"success": [], "failure": []}
    for episode in episodes:
        peak = episode.peak if steps is None else prefix_peak(episode.scores, steps)
        if peak is not None and episode.outcome in peaks:
            peaks[episode.outcome].append(peak)
    found = bootstrap_auroc(peaks["success"], peaks["failure"], draws=draws)
    return None if found is None else found.to_json()


def _count(episodes: Iterable[Episode], key: str) -> int:
    return sum(bool(episode.record.get(key)) for episode in episodes)


def _benchmark_rate(completed: Sequence[Episode]) -> dict[str, Any] | None:
    """How often the benchmark's own verdict was true at the end, as it is published."""
    reported = [dict(one.record.get("final_info") or {}) for one in completed]
    verdicts = [info["benchmark_success"] for info in reported if "benchmark_success" in info]
    if not verdicts:
        return None
    return wilson(sum(map(bool, verdicts)), len(verdicts)).to_json()


def _spread(values: Iterable[float | None]) -> dict[str, float] | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    median, p99 = np.quantile(np.asarray(known, dtype=np.float64), [0.5, 0.99])
    return {"median": float(median), "p99": float(p99)}


def _faults(episodes: Iterable[Episode]) -> dict[str, int]:
    return dict(sorted(Counter(code for one in episodes for code in one.record["faults"]).items()))


def _by_disturbance(completed: Sequence[Episode]) -> dict[str, Any]:
    """Return the pass rate by kind of disturbance; empty where nothing was disturbed."""
    kinds = sorted({one.disturbance for one in completed if one.disturbance is not None})
    groups = {kind: [one for one in completed if one.disturbance == kind] for kind in kinds}
    return {
        kind: wilson(sum(one.outcome == "success" for one in group), len(group)).to_json()
        for kind, group in groups.items()
    }
