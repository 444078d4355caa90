"""Panels of the live view: from progress to rich renderables, without state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from monitor.records import Alert, Mode
from monitor.rollout.records import StepRecord
from monitor.rollout.views.plain import clock
from monitor.rollout.views.progress import EpisodeProgress, FinishedEpisode, Progress
from monitor.rollout.views.sparkline import UNKNOWN, sparkline, squeeze

__all__ = ["CameraImage", "ViewSettings", "view"]

COLOUR: Final = {Mode.TASK: "#3fb950", Mode.RECOVER: "#e3a008", Mode.HALT: "#f85149"}
OUTCOME: Final = {
    "success": "#3fb950",
    "failure": "#f85149",
    "halted": "#e3a008",
    "error": "#d670d6",
}
DIM: Final = "#7d8590"
INK: Final = "#58a6ff"
CURVE: Final = "#8b9bb4"
INVERSE: Final = "#0d1117"
LABELS: Final = {
    "TB-E": "token entropy",
    "TB-TP": "token doubt",
    "TB-PCS": "top-two margin",
    "TB-D": "token Gini",
    "A-PI": "action change",
    "A-VI": "action velocity",
    "A-AI": "action jerk",
    "TCP-PI": "tool change",
    "TCP-VI": "tool velocity",
    "TCP-AI": "tool jerk",
    "TI": "trajectory jerk",
    "OT": "no progress",
    "REV": "reversals",
    "STILL": "stillness",
    "NO-PROG": "lack of progress",
    "NIS": "surprise (NIS)",
    "EV": "sample spread",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSettings:
    """Settings of the views.

    Attributes:
        title: title, for example ``widowx-put-on · openvla-mini``.
        calibration: one phrase; starts with "uncalibrated" if there is no calibration.
        tau_recover: score threshold of RECOVER.
        tau_halt: score threshold of HALT.
        signals: ids of the metrics to show, in order.
        image: whether to show the camera image.
    """

    title: str
    calibration: str
    tau_recover: float
    tau_halt: float
    signals: tuple[str, ...]
    image: bool = True


def view(progress: Progress, settings: ViewSettings, *, width: int, height: int) -> RenderableType:
    """Return the whole view for a terminal of this size, in characters."""
    parts: list[RenderableType] = [_head(progress, settings)]
    now = progress.current
    # Border lines plus the fixed rows of the step panel; the two lists share the rest.
    rows = 7 + len(settings.signals)
    if now is None:
        parts.append(Panel(Text("resetting the environment …", style=DIM), box=box.ROUNDED))
    else:
        image = now.last.inputs.image if now.last is not None else None
        columns = 2 * (rows - 2)  # a square image: a character is two pixels high
        side = columns + 4 if settings.image and image is not None and width >= 90 else 0
        step = _step(now, settings, width=width - side)
        if side:
            grid = Table.grid(expand=True)
            grid.add_column(ratio=1)
            grid.add_column(width=side)
            camera = Panel(
                CameraImage(image, columns=columns, rows=rows - 2),
                title=Text("camera", style=DIM),
                title_align="left",
                box=box.ROUNDED,
                border_style=DIM,
                height=rows,
            )
            grid.add_row(step, camera)
            parts.append(grid)
        else:
            parts.append(step)
    spare = max(4, height - rows - 4 - 5)
    alerts = min(len(progress.alerts), max(1, min(5, spare // 3)))
    if alerts:
        parts.append(_alerts(progress, alerts))
    if progress.finished:
        parts.append(_finished(progress.finished, max(1, spare - alerts - 2), width))
    return Group(*parts)


def _head(progress: Progress, settings: ViewSettings) -> RenderableType:
    left = progress.seconds_left()
    outcomes = [row.result.outcome for row in progress.finished]
    counts = Text()
    for outcome, colour in OUTCOME.items():
        if outcome in outcomes:
            counts.append(f" {outcomes.count(outcome)} {outcome} ", style=colour)
    line = Table.grid(expand=True, padding=(0, 1))
    line.add_column(no_wrap=True)
    line.add_column(ratio=1)
    line.add_column(no_wrap=True)
    line.add_column(no_wrap=True, justify="right")
    shown = min(progress.total, len(progress.finished) + int(progress.running))
    line.add_row(
        Text(f"episode {shown}/{progress.total}", style="bold"),
        ProgressBar(
            total=max(progress.total, 1),
            completed=progress.episodes_done,
            complete_style=INK,
            finished_style=COLOUR[Mode.TASK],
        ),
        counts,
        Text("" if left is None else f"{clock(left)} left", style=DIM),
    )
    calibrated = not settings.calibration.startswith("uncalibrated")
    return Panel(
        line,
        title=Text.assemble(("vlawatch", f"bold {INK}"), ("  " + settings.title, "bold")),
        title_align="left",
        subtitle=Text(settings.calibration, style=DIM if calibrated else COLOUR[Mode.RECOVER]),
        subtitle_align="right",
        box=box.ROUNDED,
        border_style=INK,
    )


def _step(now: EpisodeProgress, settings: ViewSettings, *, width: int) -> RenderableType:
    last = now.last
    mode = now.modes[-1] if now.modes else Mode.TASK
    score = now.scores[-1] if now.scores else None
    curve = max(10, width - 44)
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, min_width=23)
    grid.add_column(no_wrap=True, justify="right", min_width=10)
    grid.add_column(no_wrap=True)
    badge = Text.assemble("  ", (f" {mode.value:^9} ", f"bold {INVERSE} on {COLOUR[mode]}"))
    value = Text("–" if score is None else f"{score:.2f}", style=f"bold {COLOUR[mode]}")
    grid.add_row(badge, value, _score_bar(score, mode, settings, curve))
    grid.add_row(Text("  score, so far", style=DIM), "", _score_curve(now.scores, now.modes, curve))
    distance = now.distances[-1] if now.distances else None
    grid.add_row(
        _label("  distance", "to goal"),
        "–" if distance is None else f"{distance * 100:.1f} cm",
        Text(sparkline(now.distances, width=curve), style=INK),
    )
    for name in settings.signals:
        series = now.metrics.get(name, [])
        known = series[-1] if series else None
        grid.add_row(
            _label("  " + name, LABELS.get(name.partition("_")[0], "")),
            "–" if known is None else f"{known:.3g}",
            Text(sparkline(series, width=curve), style=DIM if known is None else _heat(last, name)),
        )
    policy = "–" if last is None else f"{last.policy_ms:.1f} ms"
    overhead = "–" if last is None else f"{last.overhead_us:.0f} µs"
    times = Text.assemble(
        ("  policy ", DIM), policy, ("   monitor ", DIM), overhead, ("   faults ", DIM)
    )
    codes = [] if last is None else [fault.code for fault in last.decision.faults]
    times.append(" ".join(codes) or "none", style=COLOUR[Mode.HALT] if codes else "")
    step = len(now.scores)
    horizon = f"/{now.horizon}" if now.horizon else ""
    scene = now.start.spec.scene
    options = "".join(f"  {item}" for item in now.start.spec.options.values())
    return Panel(
        Group(Text(f"“{now.start.instruction}”", style="italic"), grid, times),
        title=Text.assemble((f"scene {scene}", "bold"), f"  step {step}{horizon}", (options, DIM)),
        title_align="left",
        box=box.ROUNDED,
        border_style=COLOUR[mode],
        height=7 + len(settings.signals),
    )


def _heat(last: StepRecord | None, name: str) -> str:
    """Return the colour of a metric by its surprise; 0.4 means one step in a hundred."""
    surprise = None if last is None else last.surprise.get(name)
    if surprise is None or surprise < 0.4:
        return CURVE
    return COLOUR[Mode.RECOVER] if surprise < 0.7 else COLOUR[Mode.HALT]


def _label(name: str, meaning: str) -> Text:
    return Text.assemble((f"{name:<9} ", "bold"), (meaning, DIM))


def _score_bar(score: float | None, mode: Mode, settings: ViewSettings, width: int) -> Text:
    """Return a bar from 0 to 1 with a mark at each of the two thresholds."""
    filled = 0 if score is None else round(min(1.0, score) * width)
    bar = Text("█" * filled + "░" * (width - filled))
    bar.stylize(COLOUR[mode], 0, filled)
    bar.stylize(DIM, filled)
    for level, at in ((settings.tau_recover, Mode.RECOVER), (settings.tau_halt, Mode.HALT)):
        column = round(level * width)
        if 0 <= column < width:
            mark = Text("┃", style=COLOUR[at])
            bar = Text.assemble(bar[:column], mark, bar[column + 1 :])
    return bar


def _score_curve(scores: Sequence[float | None], modes: Sequence[Mode], width: int) -> Text:
    """Return the score's history, each point in the colour of its mode."""
    line = sparkline(scores, width=width, high=1.0)
    ranks = [float(_SEVERITY[mode]) for mode in modes]
    curve = Text()
    for mark, rank in zip(line, squeeze(ranks, width), strict=True):
        curve.append(mark, style=DIM if mark == UNKNOWN else COLOUR[_BY_SEVERITY[int(rank or 0)]])
    return curve


_BY_SEVERITY: Final = (Mode.TASK, Mode.RECOVER, Mode.HALT)
_SEVERITY: Final = {mode: rank for rank, mode in enumerate(_BY_SEVERITY)}


def _alerts(progress: Progress, count: int) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    for justify in ("right", "left", "right", "left"):
        grid.add_column(no_wrap=True, justify=justify)
    for scene, alert in list(progress.alerts)[-count:]:
        colour = COLOUR.get(_MODES.get(alert.code, Mode.HALT), "")
        grid.add_row(
            Text(f"scene {scene} step {alert.step}", style=DIM),
            Text(alert.code, style=f"bold {colour}"),
            Text("" if alert.score is None else f"{alert.score:.2f}"),
            Text(_without_mark(alert), overflow="ellipsis"),
        )
    title = Text("alerts", style=DIM)
    return Panel(grid, title=title, title_align="left", box=box.ROUNDED, border_style=DIM)


def _without_mark(alert: Alert) -> str:
    """Return the message without the step and code, which have columns of their own."""
    text = alert.message.removeprefix(f"step {alert.step}: ").removeprefix(alert.code)
    return text.strip(" :")


_MODES: Final = {mode.value: mode for mode in Mode}


def _finished(rows: Sequence[FinishedEpisode], count: int, width: int) -> RenderableType:
    table = Table(
        box=box.SIMPLE_HEAD, expand=True, header_style=DIM, border_style=DIM, pad_edge=False
    )
    curve = max(10, min(40, width - 88))
    table.add_column("scene", justify="right", no_wrap=True)
    table.add_column("instruction", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column("outcome", no_wrap=True)
    table.add_column("steps", justify="right", no_wrap=True)
    table.add_column("solved", justify="right", no_wrap=True)
    table.add_column("alert", justify="right", no_wrap=True)
    table.add_column("peak", justify="right", no_wrap=True)
    table.add_column("score over time", no_wrap=True, min_width=curve)
    for row in rows[-count:]:
        result = row.result
        colour = OUTCOME.get(result.outcome, "")
        mark = {"success": "✔ ", "failure": "✘ "}.get(result.outcome, "■ ")
        table.add_row(
            str(result.scene),
            result.instruction or result.message,
            Text(mark + result.outcome, style=colour),
            str(result.steps),
            "–" if result.first_success is None else str(result.first_success),
            "–" if result.first_alert is None else str(result.first_alert),
            "–" if result.peak_score is None else f"{result.peak_score:.2f}",
            _score_curve(row.scores, row.modes, curve) if row.scores else "",
        )
    return table


class CameraImage:
    """A camera image in half blocks: two pixels per character, 24-bit colour.

    Args:
        image: uint8 ``(H, W, 3)``; anything else is shown as a note.
        columns: largest width in characters.
        rows: largest height in characters.
    """

    def __init__(self, image: Any, *, columns: int, rows: int) -> None:
        self._pixels = _shrunk(image, columns=columns, rows=rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._pixels is None:
            yield Text("not an image of shape (H, W, 3)", style=DIM)
            return
        for upper, lower in zip(self._pixels[::2], self._pixels[1::2], strict=True):
            yield from _line(upper, lower)
            yield Segment.line()

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = 30 if self._pixels is None else self._pixels.shape[1]
        return Measurement(width, width)


def _shrunk(image: Any, *, columns: int, rows: int) -> NDArray[np.uint8] | None:
    """Return a nearest-neighbour copy that fits, with an even number of rows."""
    try:
        pixels = np.asarray(image)
    except Exception:  # a tensor on a device, or not an image
        return None
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or 0 in pixels.shape:
        return None
    high, wide = pixels.shape[:2]
    scale = min(columns / wide, 2 * rows / high)
    out_wide, out_high = max(1, int(wide * scale)), max(2, int(high * scale) // 2 * 2)
    rows_at = np.arange(out_high) * high // out_high
    columns_at = np.arange(out_wide) * wide // out_wide
    return np.asarray(pixels[rows_at][:, columns_at], dtype=np.uint8)


def _line(upper: NDArray[np.uint8], lower: NDArray[np.uint8]) -> Iterable[Segment]:
    # Colours are rounded to 5 bits so that the cache of styles works.
    for top, bottom in zip((upper & 0xF8).tolist(), (lower & 0xF8).tolist(), strict=True):
        yield Segment("▀", _style(*top, *bottom))


@lru_cache(maxsize=16384)
def _style(*rgb: int) -> Style:
    red, green, blue, red2, green2, blue2 = rgb
    return Style.parse(f"rgb({red},{green},{blue}) on rgb({red2},{green2},{blue2})")
