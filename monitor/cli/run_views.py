"""What follows a run: the live view or plain lines, recorders and other packages' observers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monitor.cli.run import ViewOptions
    from monitor.pipeline import Monitor
    from monitor.rollout import Observer
    from monitor.rollout.views.panels import ViewSettings

__all__ = ["observers"]

log = logging.getLogger("vlawatch")


def observers(
    stack: ExitStack,
    options: ViewOptions,
    folder: Path,
    monitor: Monitor,
    *,
    title: str,
    plain: bool,
) -> list[Observer]:
    """Return the observers of a run.

    Args:
        stack: closes them.
        options: what is shown and recorded.
        folder: folder of the run.
        monitor: monitor of the run.
        title: title of the live view.
        plain: True never draws the live view.
    """
    from monitor.rollout.recorders.sinks import load_sinks

    sinks = load_sinks(options.sink or (), folder, stack)
    return [
        *_views(stack, options, _view_settings(title, monitor), plain=plain),
        *_recorders(options, folder),
        *sinks,
    ]


def _views(
    stack: ExitStack, options: ViewOptions, settings: ViewSettings, *, plain: bool
) -> Iterator[Observer]:
    """Yield the live view where stdout is a terminal, else plain lines; both for a screenshot."""
    from rich.console import Console

    from monitor.rollout.views.live import LiveView
    from monitor.rollout.views.plain import PlainView

    console = Console()
    drawn = options.live and console.is_terminal and not plain
    if drawn or options.screenshot is not None:
        yield stack.enter_context(
            LiveView(settings, console=console if drawn else None, screenshot=options.screenshot)
        )
    if not drawn:
        yield PlainView(lambda line: log.info("%s", line))


def _recorders(options: ViewOptions, folder: Path) -> Iterator[Observer]:
    if options.video:
        from monitor.rollout.recorders.video import VideoRecorder

        yield VideoRecorder(folder)
    if options.keep_logits:
        from monitor.rollout.recorders.logits import LogitsRecorder

        yield LogitsRecorder(folder)
    if options.keep_hidden:
        from monitor.rollout.recorders.hidden import HiddenRecorder

        yield HiddenRecorder(folder)


def _view_settings(title: str, monitor: Monitor) -> ViewSettings:
    from monitor.rollout.views.panels import ViewSettings

    fitted = monitor.calibration
    calibration = "uncalibrated: reference quantiles"
    if fitted is not None:
        calibration = f"calibrated on {fitted.n_success} successful rollouts, α = {fitted.alpha:g}"
    signals = monitor.config.score.signals
    return ViewSettings(
        title=title,
        calibration=calibration,
        tau_recover=monitor.tau_recover,
        tau_halt=monitor.tau_halt,
        signals=tuple(name for name, weight in signals.items() if weight > 0),
    )
