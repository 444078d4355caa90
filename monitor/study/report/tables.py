"""Tables of the report page: metrics of failures against successes, and risk against baselines."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from monitor.study.report.baselines import risk_rows
from monitor.study.report.rollout_values import metric_differences
from monitor.study.runs import Run
from monitor.study.statistics.association import Difference
from monitor.study.statistics.probability import METHODS, reliability

__all__ = ["metric_table", "probability_table", "risk_table"]


def metric_table(run: Run, metrics: Sequence[str]) -> str:
    """HTML of how each metric differs; empty where one of the two outcomes is missing."""
    rows = [
        (
            escape(one.metric),
            *(_a12(one.of.get(name)) for name in ("mean", "max", "peak8", "rms")),
            "–" if one.p_holm is None else f"{one.p_holm:.2g}",
        )
        for one in metric_differences(run, metrics)
        if any(found is not None for found in one.of.values())
    ]
    note = (
        "A12: share of pairs in which the failure has the larger value, one value per rollout (0.5 "
        "is chance) · p: Mann-Whitney U of the means, Holm's correction over these metrics"
    )
    columns = ("metric", "A12 mean", "A12 max", "A12 8-step peak", "A12 RMS", "p")
    return _table("Failures against successes", note, columns, rows)


def risk_table(run: Run) -> str:
    """HTML of the excess risk of each score; empty where one of the two outcomes is missing."""
    outcomes = {one.outcome for one in run.of("success", "failure")}
    if len(outcomes) < 2:
        return ""
    rows = [
        (
            escape(one.name),
            str(one.episodes),
            f"{one.failure:.3f}",
            "–" if one.path is None else f"{one.path:.3f}",
        )
        for one in risk_rows(run)
    ]
    note = (
        "E-AURC, 0 is perfect: area under risk against coverage beyond that of the ideal order · "
        "SPL: success weighted by the first distance over the tool's path"
    )
    columns = ("sorted by", "episodes", "loss 1 - success", "loss 1 - SPL")
    return _table("Selective risk against baselines", note, columns, rows)


def probability_table(run: Run) -> str:
    """HTML of how well the peak score gives a probability of failure; empty with too few."""
    known = [
        (one.peak, float(one.outcome == "failure"))
        for one in run.of("success", "failure")
        if one.peak is not None
    ]
    scores, failed = [peak for peak, _ in known], [lost for _, lost in known]
    rows = [
        (name, f"{found.ece:.3f}", f"{found.brier:.3f}", f"{found.base:.3f}")
        for name in METHODS
        if (found := reliability(scores, failed, name)) is not None
    ]
    note = (
        "each episode's by a fit on other episodes · ECE over 10 bins and Brier score, 0 is "
        "perfect · plain: Brier score of the share of failures"
    )
    columns = ("fit", "ECE", "Brier", "plain")
    return _table("Peak score as a probability of failure", note, columns, rows)


def _a12(found: Difference | None) -> str:
    return "–" if found is None else f"{found.a12:.2f} ({found.size})"


def _table(title: str, note: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th{_kind(i)}>{name}</th>" for i, name in enumerate(columns))
    body = "".join(
        f"<tr>{''.join(f'<td{_kind(i)}>{cell}</td>' for i, cell in enumerate(row))}</tr>"
        for row in rows
    )
    return (
        f'<h2>{title}</h2><p class="muted">{note}</p><div class="scroll"><table><tr>{head}</tr>'
        f"{body}</table></div>"
    )


def _kind(column: int) -> str:
    return " class=n" if column else ""
