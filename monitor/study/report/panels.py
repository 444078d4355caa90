"""Panels of a run's figures, shared by the page (SVG) and the image next to it (PNG)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from monitor.study.report import figures
from monitor.study.report.palette import LIGHT, Palette
from monitor.study.runs import Episode, Run
from monitor.study.statistics.intervals import wilson
from monitor.study.summary import summarise

__all__ = [
    "chosen",
    "draw_comparison",
    "draw_episodes",
    "draw_metrics",
    "draw_overview",
    "known_metrics",
    "metrics_shown",
    "write_image",
]

EPISODES: Final = 8
"""Episodes that the image draws one by one."""
METRICS: Final = 4
_WIDTH_IN: Final = 12.0


def write_image(runs: Sequence[Run], path: Path) -> None:
    """Write the image of a run, or of the pass rates of several."""
    with figures.style(LIGHT):
        if len(runs) == 1:
            figure = _image(runs[0])
        else:
            figure = figures.new_figure(_WIDTH_IN * 0.75, 1.3 + 0.42 * len(runs))
            draw_comparison(figure, runs, LIGHT)
            figure.axes[0].set_title("Pass rate by run")
        figure.savefig(path, dpi=140)


def _image(run: Run) -> Any:
    episodes, metrics = chosen(run, EPISODES), metrics_shown(run, METRICS)
    rows = -(-len(episodes) // 4)
    figure = figures.new_figure(_WIDTH_IN, 6.8 + 1.5 * rows + 2.1 * bool(metrics))
    heights = [0.95, 4.3, *([1.5 * rows + 0.2] if rows else []), *([2.1] if metrics else [])]
    parts = figure.subfigures(len(heights), 1, height_ratios=heights)
    _head(parts[0], run)
    draw_overview(parts[1], run, LIGHT)
    if rows:
        key = "bands: yellow recover, violet halt · ▲ alert · | fault · ● first success"
        parts[2].suptitle(key, x=0.99, ha="right", fontsize=8, color=LIGHT.muted)
        draw_episodes(parts[2], run, episodes, LIGHT)
    if metrics:
        draw_metrics(parts[-1], run, metrics, LIGHT, columns=METRICS)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.06)
    return figure


def draw_comparison(part: Any, runs: Sequence[Run], palette: Palette) -> None:
    """Draw the pass rates of several runs below each other."""
    rates = [wilson(len(run.of("success")), len(run.of("success", "failure"))) for run in runs]
    figures.draw_rates(part.subplots(), [run.path.name for run in runs], rates, palette)


def draw_overview(part: Any, run: Run, palette: Palette) -> None:
    """Draw the scores of all episodes, their peaks and the selective risk."""
    axes = part.subplot_mosaic([["map", "peaks"], ["map", "risk"]], width_ratios=[1.55, 1.0])
    figures.draw_score_map(axes["map"], run, palette)
    figures.draw_peaks(axes["peaks"], run, palette)
    figures.draw_risk(axes["risk"], run, palette)


def draw_episodes(part: Any, run: Run, episodes: Sequence[Episode], palette: Palette) -> None:
    """Draw episodes one by one, four in a row."""
    grid = part.subplots(-(-len(episodes) // 4), 4, sharex=True, sharey=True, squeeze=False)
    steps = max((len(one.steps) for one in episodes), default=1)
    for panel, one in zip(_panels(grid, len(episodes)), episodes, strict=True):
        figures.draw_episode(panel, run, one, palette, steps)
    for row in grid:
        row[0].set_ylabel("score")


def draw_metrics(
    part: Any, run: Run, metrics: Sequence[str], palette: Palette, *, columns: int
) -> None:
    """Draw metrics of all episodes, one panel per metric."""
    grid = part.subplots(-(-len(metrics) // columns), columns, squeeze=False)
    for panel, metric in zip(_panels(grid, len(metrics)), metrics, strict=True):
        figures.draw_metric(panel, run, metric, palette)


def _panels(grid: Any, count: int) -> list[Any]:
    """Return the first panels of a grid and blank the others."""
    panels = grid.ravel().tolist()
    for panel in panels[count:]:
        panel.set_axis_off()
    return list(panels[:count])


def chosen(run: Run, count: int) -> list[Episode]:
    """Return the episodes worth a look.

    What went wrong comes first, then false alarms, then quiet successes.
    Half of the places are for what went wrong; successes fill the rest, and the other way round
    where there are few of one kind.
    """
    wrong = run.of("failure", "halted", "error")
    right = sorted(run.of("success"), key=lambda one: (one.first_alert is None, one.number))
    places = max(count // 2, count - len(right))
    picked = wrong[:places]
    return [*picked, *right[: count - len(picked)]]


def known_metrics(run: Run) -> list[str]:
    """Return the metrics known at some step of the first episodes, in the trace's order."""
    return list(
        dict.fromkeys(
            name
            for one in run.episodes[:20]
            for step in one.steps
            for name, value in (step.get("metrics") or {}).items()
            if value is not None
        )
    )


def metrics_shown(run: Run, count: int) -> list[str]:
    """Return the signals of the score that are ever known in this run, then other metrics."""
    known = set(known_metrics(run))
    signals = [name for name, weight in run.config.score.signals.items() if weight > 0]
    wanted = [*signals, "TB-E", "A-PI", "TCP-PI", "TI", "OT"]
    return list(dict.fromkeys(name for name in wanted if name in known))[:count]


def _head(part: Any, run: Run) -> None:
    summary = summarise(run)
    rate = wilson(summary["pass_rate"]["count"], summary["pass_rate"]["total"])
    part.text(0.012, 0.68, f"{run.policy} on {run.env}", fontsize=15, weight="bold", va="center")
    line = (
        f"{summary['episodes']} episodes · {summary['halted']} halted · {summary['errors']} "
        f"without a verdict · {summary['false_alarms']} false alarms · "
        f"{summary['missed_failures']} failures without an alert"
    )
    part.text(0.012, 0.25, line, color=LIGHT.muted, fontsize=9.5, va="center")
    value = "no data" if rate.value is None else f"{100 * rate.value:.0f} %"
    part.text(0.988, 0.68, value, fontsize=24, weight="bold", ha="right", va="center")
    interval = f"pass rate {rate.count}/{rate.total}, 95 % {rate.low:.0%} to {rate.high:.0%}"
    part.text(0.988, 0.25, interval, color=LIGHT.muted, ha="right", va="center", fontsize=9.5)
    if run.calibration is None:
        part.text(
            0.87,
            0.68,
            " uncalibrated: thresholds promise nothing ",
            ha="right",
            va="center",
            color=LIGHT.failure,
            fontsize=9.5,
            weight="bold",
            bbox={"facecolor": "none", "edgecolor": LIGHT.failure, "linewidth": 1.0},
        )
