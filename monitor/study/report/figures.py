"""Drawings of a run, each onto axes that are given, so that page and image share them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from textwrap import shorten
from typing import Any, Final

import numpy as np

from monitor.catalogue import recorded_infos
from monitor.records import FloatArray
from monitor.study.extras import require
from monitor.study.report.palette import Palette, with_variables
from monitor.study.runs import Episode, Run
from monitor.study.statistics.intervals import Rate
from monitor.study.statistics.selective_risk import selective_risk

__all__ = [
    "ORDER",
    "draw_episode",
    "draw_metric",
    "draw_peaks",
    "draw_rates",
    "draw_risk",
    "draw_score_map",
    "new_figure",
    "style",
    "to_svg",
]

ORDER: Final = ("failure", "halted", "error", "success")
"""What went wrong comes first."""
_STYLE: Final[Mapping[str, Any]] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 7.0,
    "axes.titleweight": "bold",
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "legend.handlelength": 1.4,
    "svg.fonttype": "none",
    "svg.hashsalt": "vlawatch",
}


@contextmanager
def style(palette: Palette) -> Iterator[None]:
    """Draw in this palette; the caller's matplotlib settings come back afterwards."""
    colours = {
        "figure.facecolor": palette.paper,
        "axes.facecolor": palette.paper,
        "savefig.facecolor": palette.paper,
        "text.color": palette.ink,
        "axes.titlecolor": palette.ink,
        "axes.labelcolor": palette.muted,
        "axes.edgecolor": palette.muted,
        "xtick.color": palette.muted,
        "ytick.color": palette.muted,
        "grid.color": palette.grid,
    }
    with require("matplotlib").rc_context({**_STYLE, **colours}):
        yield


def new_figure(width_in: float, height_in: float) -> Any:
    """Make a figure without touching any global state."""
    return require("matplotlib.figure").Figure(figsize=(width_in, height_in), layout="constrained")


def to_svg(figure: Any) -> str:
    """SVG element of a figure drawn with placeholders, for a page of HTML."""
    text = StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(text, format="svg", metadata=nothing, transparent=True)
    svg = text.getvalue()
    return with_variables(svg[svg.index("<svg") :])


def draw_score_map(axes: Any, run: Run, palette: Palette) -> None:
    """Draw one row per episode and one column per step, darker for a higher score."""
    episodes = sorted(run.episodes, key=lambda one: (ORDER.index(one.outcome), -(one.peak or 0.0)))
    steps = max((len(one.scores) for one in episodes), default=1) or 1
    # Opacity carries the score, so that the map works on light and dark; unknown is blank.
    image = np.zeros((max(len(episodes), 1), steps, 4))
    image[..., :3] = require("matplotlib.colors").to_rgb("#d0611f")
    for row, one in enumerate(episodes):
        known = [(i, score) for i, score in enumerate(one.scores) if score is not None]
        for i, score in known:
            image[row, i, 3] = min(score, 1.0)
    axes.imshow(image, aspect="auto", interpolation="nearest", extent=_extent(image))
    for row, one in enumerate(episodes):
        colour = palette.outcome(one.outcome)
        axes.barh(row, 0.012 * steps, left=-0.026 * steps, height=1.0, color=colour, clip_on=False)
        if one.first_alert is not None:
            axes.plot(
                [one.first_alert] * 2, [row - 0.5, row + 0.5], color=palette.ink, linewidth=1.3
            )
    axes.set(
        xlim=(-0.5, steps - 0.5), ylim=(max(len(episodes), 1) - 0.5, -0.5), xlabel="step", yticks=[]
    )
    axes.spines["left"].set_visible(False)
    axes.set_title("Score of every episode (rows), first alert |")
    _key(axes, sorted({one.outcome for one in episodes}, key=ORDER.index), palette)


def draw_peaks(axes: Any, run: Run, palette: Palette) -> None:
    """Draw a histogram of peak scores, solved against failed."""
    bins = np.linspace(0.0, 1.0, 21)
    shown = []
    for outcome in ("success", "failure"):
        peaks = [one.peak for one in run.of(outcome) if one.peak is not None]
        if peaks:
            colour = palette.outcome(outcome)
            axes.hist(peaks, bins=bins, color=colour, alpha=0.35, edgecolor="none")
            axes.hist(peaks, bins=bins, histtype="step", color=colour, linewidth=1.2)
            shown.append(outcome)
    _thresholds(axes, run, palette, vertical=True)
    axes.set(xlim=(0, 1), xlabel="peak score", ylabel="episodes")
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set_title("Peak score, success against failure")
    _key(axes, shown, palette)


def draw_risk(axes: Any, run: Run, palette: Palette) -> None:
    """Draw the share of failures among the episodes kept, the least alarming first."""
    scored = [
        (one.peak, float(one.outcome == "failure"))
        for one in run.of("success", "failure")
        if one.peak is not None
    ]
    loss = [lost for _, lost in scored]
    curve = selective_risk([peak for peak, _ in scored], loss)
    axes.set_title("Selective risk")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="coverage (episodes kept)", ylabel="failures kept")
    axes.grid(linewidth=0.6)
    axes.set_axisbelow(True)
    if curve is None:
        _say(axes, "no data", palette)
        return
    best = selective_risk(loss, loss)
    if best is not None:
        axes.plot(
            best.coverage, best.risk, color=palette.muted, linewidth=1.0, linestyle=(0, (2, 2))
        )
    axes.plot(curve.coverage, curve.risk, color=palette.success, linewidth=1.8)
    axes.axhline(float(np.mean(loss)), color=palette.muted, linewidth=0.8)
    top = max(0.1, float(np.max(curve.risk)) * 1.6)
    axes.set_ylim(0, min(top, 1.25))
    text = f"AURC {curve.aurc:.3f}\nexcess over ideal {curve.e_aurc:.3f}"
    axes.text(0.04, 0.96, text, transform=axes.transAxes, va="top", color=palette.ink)


def draw_episode(axes: Any, run: Run, one: Episode, palette: Palette, steps: int) -> None:
    """Draw the score over time with mode bands, alerts and faults."""
    bands = {"RECOVER": palette.recover, "HALT": palette.halted}
    for mode, start, stop in _stretches([str(step["mode"]) for step in one.steps]):
        if mode in bands:
            axes.axvspan(
                start - 0.5, stop - 0.5, color=bands[mode], alpha=0.28, linewidth=0, zorder=0
            )
    _thresholds(axes, run, palette)
    axes.plot(_gaps(one.scores), color=palette.score, linewidth=1.3)
    alerts = [step["step"] for step in one.steps if step["alerts"]]
    faults = [step["step"] for step in one.steps if step["faults"]]
    marks = ((faults, 1.04, "|", palette.failure), (alerts, -0.03, "^", palette.ink))
    for steps_marked, height, marker, colour in marks:
        if steps_marked:  # an empty line outside the axes makes the layout collapse
            heights = [height] * len(steps_marked)
            axes.plot(steps_marked, heights, marker, color=colour, markersize=3.5, clip_on=False)
    solved = one.record.get("first_success")
    if solved is not None:
        axes.plot([solved], [1.0], "o", color=palette.success, markersize=3.6, clip_on=False)
    axes.set(xlim=(-0.5, steps - 0.5), ylim=(-0.03, 1.04), yticks=(0, 0.5, 1))
    kind = "" if one.disturbance is None else f", {one.disturbance.replace('_', ' ')}"
    axes.set_title(
        f"{one.outcome} · scene {one.scene}{kind}",
        color=palette.outcome(one.outcome),
        fontsize=8.0,
        pad=5,
    )


def draw_metric(axes: Any, run: Run, metric: str, palette: Palette) -> None:
    """Draw one metric of all episodes, by outcome; where it is unknown there is no line."""
    known: list[float] = []
    for outcome in ("success", "failure", "halted"):
        rows = [one.series(metric) for one in run.of(outcome)]
        if not rows:
            continue
        colour = palette.outcome(outcome)
        table = np.full((len(rows), max(len(row) for row in rows)), np.nan)
        for line, row in zip(table, rows, strict=True):
            line[: len(row)] = _gaps(row)
        known += table[np.isfinite(table)].tolist()
        for line in table[:40]:
            axes.plot(line, color=colour, alpha=0.22, linewidth=0.6)
        axes.plot(_median(table), color=colour, linewidth=1.7)
    info = recorded_infos(run.header).get(metric)
    unit = f" [{info.unit}]" if info is not None and info.unit not in ("", "1") else ""
    meaning = "" if info is None else info.meaning
    axes.set_title(f"{metric}{unit}", pad=5)
    bottom = 0.0 if info is None or info.low is None else min(info.low, 0.0)
    axes.set_ylim(bottom, _top(known, bottom))
    longest = max((len(one.steps) for one in run.episodes), default=1)
    axes.set_xlim(-0.5, max(longest, 2) - 0.5)  # from 0, so that the warm-up shows as a gap
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel(shorten(meaning, 52, placeholder=" …"), fontsize=7.0)


def draw_rates(axes: Any, names: Sequence[str], rates: Sequence[Rate], palette: Palette) -> None:
    """Draw pass rates with their intervals, one per line."""
    for row, rate in enumerate(rates):
        axes.plot([rate.low, rate.high], [row, row], color=palette.success, linewidth=2.2)
        if rate.value is not None:
            axes.plot([rate.value], [row], "o", color=palette.success, markersize=6, clip_on=False)
        axes.text(1.03, row, rate.to_text(), va="center", color=palette.ink)
    axes.set(xlim=(0, 1), ylim=(len(rates) - 0.5, -0.5), xlabel="pass rate, 95 % Wilson interval")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", labelcolor=palette.ink, length=0)
    axes.grid(axis="x", linewidth=0.6)
    axes.spines["left"].set_visible(False)


def _gaps(values: Sequence[float | None]) -> FloatArray:
    """Replace None by NaN, which matplotlib leaves blank."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _median(table: FloatArray) -> FloatArray:
    """Return the median of each column over what is known; NaN where nothing is."""
    columns = [column[np.isfinite(column)] for column in table.T]
    return np.array([np.median(column) if column.size else np.nan for column in columns])


def _top(values: Sequence[float], bottom: float) -> float:
    """Return the upper end of an axis: a single spike must not flatten everything else."""
    if not values:
        return bottom + 1.0
    most = float(np.quantile(values, 0.998))
    return max(bottom + 1.15 * (most - bottom), bottom + 1e-9)


def _stretches(modes: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Runs of equal modes as (mode, first, one past the last)."""
    start = 0
    for i in range(1, len(modes) + 1):
        if i == len(modes) or modes[i] != modes[start]:
            yield modes[start], start, i
            start = i


def _thresholds(axes: Any, run: Run, palette: Palette, *, vertical: bool = False) -> None:
    for tau, colour in ((run.tau_recover, palette.recover), (run.tau_halt, palette.halted)):
        if tau <= 1.0:
            line = axes.axvline if vertical else axes.axhline
            line(tau, color=colour, linewidth=0.9, linestyle=(0, (4, 2)))


def _key(axes: Any, outcomes: Sequence[str], palette: Palette) -> None:
    """Write the names of the outcomes in their colours, at the upper right above the axes."""
    for place, outcome in enumerate(reversed(outcomes)):
        axes.annotate(
            outcome,
            (1.0, 1.0),
            xycoords="axes fraction",
            xytext=(-46 * place, 7),
            textcoords="offset points",
            ha="right",
            color=palette.outcome(outcome),
        )


def _say(axes: Any, text: str, palette: Palette) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color=palette.muted)


def _extent(image: FloatArray) -> tuple[float, float, float, float]:
    return (-0.5, image.shape[1] - 0.5, image.shape[0] - 0.5, -0.5)
