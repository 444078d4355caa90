"""Tables of the report page, as rows of text for its template."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from monitor.study.report.baselines import risk_rows
from monitor.study.report.rollout_values import metric_differences
from monitor.study.runs import Episode, Run
from monitor.study.statistics.association import GroupDifference
from monitor.study.statistics.intervals import wilson
from monitor.study.statistics.probability import METHODS, reliability
from monitor.study.summary import summarise

__all__ = ["Table", "comparison_table", "number", "run_tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of text.

    Attributes:
        title: heading above it.
        note: explanation under the heading.
        columns: name of each column.
        text: columns that hold text; the others hold numbers.
        rows: one cell per column.
    """

    title: str = ""
    note: str = ""
    columns: Sequence[str]
    text: Collection[str]
    rows: Sequence[Sequence[str]]

    def named(self, row: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield the cells of a row with the names of their columns."""
        return zip(self.columns, row, strict=True)


def number(value: float | None, spec: str, missing: str = "–") -> str:
    """Format a number that may be missing.

    >>> number(0.5, ".0%"), number(None, ".2f")
    ('50%', '–')
    """
    return missing if value is None else format(value, spec)


def run_tables(run: Run, metrics: Sequence[str]) -> list[Table]:
    """Return the tables of a run; one without rows has nothing to show.

    Args:
        run: run with at least one episode.
        metrics: metrics to compare between failures and successes.

    Raises:
        MissingExtraError: scipy or scikit-learn is not installed.
    """
    return [_metrics(run, metrics), _risk(run), _probability(run), _problems(run)]


def comparison_table(runs: Sequence[Run]) -> Table:
    """Return the results of several runs, one row per run."""
    rows = []
    for run in runs:
        summary = summarise(run)
        rate = wilson(summary["pass_rate"]["count"], summary["pass_rate"]["total"])
        counts = [summary[key] for key in ("halted", "errors", "false_alarms", "missed_failures")]
        auroc = number((summary["detection"] or {}).get("auroc"), ".2f")
        names = (run.path.name, f"{run.policy} on {run.env}", rate.to_text())
        rows.append((*names, *map(str, counts), auroc))
    text = ("run", "policy", "pass rate")
    columns = (*text, "halted", "errors", "false alarms", "missed failures", "AUROC")
    return Table(columns=columns, text=text, rows=rows)


def _metrics(run: Run, metrics: Sequence[str]) -> Table:
    return Table(
        title="Failures against successes",
        note="A12: share of pairs in which the failure has the larger value, one value per rollout "
        "(0.5 is chance) · p: Mann-Whitney U of the means, Holm's correction over these metrics",
        columns=("metric", "A12 mean", "A12 max", "A12 8-step peak", "A12 RMS", "p"),
        text=("metric",),
        rows=[
            (
                one.metric,
                *(_a12(one.of.get(name)) for name in ("mean", "max", "peak8", "rms")),
                number(one.p_holm, ".2g"),
            )
            for one in metric_differences(run, metrics)
            if any(found is not None for found in one.of.values())
        ],
    )


def _risk(run: Run) -> Table:
    both = {one.outcome for one in run.episodes} >= {"success", "failure"}
    return Table(
        title="Selective risk against baselines",
        note="E-AURC, 0 is perfect: area under risk against coverage beyond that of the ideal "
        "order · SPL: success weighted by the first distance over the tool's path",
        columns=("sorted by", "episodes", "loss 1 - success", "loss 1 - SPL"),
        text=("sorted by",),
        rows=[
            (one.name, str(one.episodes), number(one.failure, ".3f"), number(one.path, ".3f"))
            for one in (risk_rows(run) if both else ())
        ],
    )


def _probability(run: Run) -> Table:
    known = [one for one in run.of("success", "failure") if one.peak is not None]
    scores = [one.peak for one in known if one.peak is not None]
    failed = [float(one.outcome == "failure") for one in known]
    return Table(
        title="Peak score as a probability of failure",
        note="each episode's by a fit on other episodes · ECE over 10 bins and Brier score, 0 is "
        "perfect · plain: Brier score of the share of failures",
        columns=("fit", "ECE", "Brier", "plain"),
        text=("fit",),
        rows=[
            (name, *(f"{value:.3f}" for value in (found.ece, found.brier, found.base)))
            for name in METHODS
            if (found := reliability(scores, failed, name)) is not None
        ],
    )


def _problems(run: Run) -> Table:
    text = ("outcome", "disturbance", "last fault", "message")
    return Table(
        title="What went wrong",
        columns=("scene", "outcome", "disturbance", "steps", "first alert", "peak", *text[2:]),
        text=text,
        rows=[_problem(one) for one in run.of("failure", "halted", "error")],
    )


def _problem(one: Episode) -> Sequence[str]:
    faults = [
        f"{step['faults'][-1]} at step {step['step']}" for step in one.steps if step["faults"]
    ]
    return (
        str(one.scene),
        one.outcome,
        one.disturbance or "–",
        str(one.length),
        number(one.first_alert, "d"),
        number(one.peak, ".2f"),
        faults[-1] if faults else "–",
        one.message[:200],
    )


def _a12(found: GroupDifference | None) -> str:
    return "–" if found is None else f"{found.a12:.2f} ({found.size})"
