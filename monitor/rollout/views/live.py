"""The live view in a terminal, and screenshots of it."""

from __future__ import annotations

import io
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Final, final

from rich.console import Console
from rich.live import Live
from rich.terminal_theme import TerminalTheme

from monitor.records import Mode
from monitor.rollout.records import EpisodeResult, EpisodeStart, RunStart, StepRecord
from monitor.rollout.views.panels import ViewSettings, view
from monitor.rollout.views.progress import Progress

__all__ = ["LiveView", "save_screenshot"]

REFRESH_S: Final = 0.1
"""Shortest time between two frames; drawing one takes some ms, which would slow the run."""

SCREENSHOT_SIZE: Final = (124, 40)

_THEME: Final = TerminalTheme(
    (13, 17, 23),
    (230, 237, 243),
    [
        (72, 79, 88),
        (248, 81, 73),
        (63, 185, 80),
        (227, 160, 8),
        (88, 166, 255),
        (214, 112, 214),
        (57, 197, 207),
        (177, 186, 196),
    ],
)


@final
class LiveView:
    """Live view of a run; a context manager around it.

    Args:
        settings: titles, thresholds and the metrics to show.
        console: terminal to draw on; None draws nothing and serves screenshots only.
        screenshot: SVG file for the most informative moment: in RECOVER if there is one.
    """

    def __init__(
        self, settings: ViewSettings, *, console: Console | None, screenshot: Path | None = None
    ) -> None:
        self.progress = Progress()
        self._settings = settings
        self._screenshot = screenshot
        self._best = -1
        self._drawn = 0.0
        self._console = console
        self._live: Live | None = None
        if console is not None:
            self._live = Live(
                console=console, auto_refresh=False, vertical_overflow="crop", screen=False
            )

    def __enter__(self) -> LiveView:
        if self._live is not None:
            self._live.start()
            self._draw(force=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._draw(force=True)
        if self._live is not None:
            self._live.stop()

    def on_run(self, start: RunStart) -> None:
        """Show how many episodes there are."""
        self.progress.on_run(start)
        self._draw(force=True)

    def on_start(self, start: EpisodeStart) -> None:
        """Show the new episode."""
        self.progress.on_start(start)
        self._draw(force=True)

    def on_step(self, record: StepRecord) -> None:
        """Show the step, unless the last frame is too recent."""
        self.progress.on_step(record)
        self._draw(force=bool(record.decision.alerts))
        self._keep_screenshot(record)

    def on_end(self, result: EpisodeResult) -> None:
        """Show the result."""
        self.progress.on_end(result)
        self._draw(force=True)

    def _draw(self, *, force: bool) -> None:
        now = perf_counter()
        if self._live is None or self._console is None:
            return
        if force or now - self._drawn >= REFRESH_S:
            size = self._console.size
            frame = view(self.progress, self._settings, width=size.width, height=size.height)
            self._live.update(frame, refresh=True)
            self._drawn = now

    def _keep_screenshot(self, record: StepRecord) -> None:
        if self._screenshot is None:
            return
        rank = _interest(record, finished=len(self.progress.finished))
        if rank > self._best:
            self._best = rank
            save_screenshot(self.progress, self._settings, self._screenshot)


def _interest(record: StepRecord, *, finished: int) -> int:
    """Rank a moment by information: RECOVER with some history, then finished episodes."""
    recovering = record.decision.mode is Mode.RECOVER and record.step >= 12
    settled = record.step >= 12
    return 100 * min(finished, 4) * settled + 1000 * recovering * min(finished + 1, 4) + settled


def save_screenshot(
    progress: Progress,
    settings: ViewSettings,
    path: Path,
    *,
    size: tuple[int, int] = SCREENSHOT_SIZE,
    title: str = "vlawatch run",
) -> None:
    """Write the view as an SVG image.

    Args:
        progress: progress of the run.
        settings: settings of the view.
        path: file to write; its folders are created.
        size: columns and rows of the terminal to draw.
        title: text of the window's title bar.
    """
    width, height = size
    sink: Any = io.StringIO()
    console = Console(
        record=True,
        width=width,
        height=height,
        file=sink,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    console.print(view(progress, settings, width=width, height=height))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(console.export_svg(title=title, theme=_THEME), encoding="utf-8")
