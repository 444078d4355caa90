"""``vlawatch replay``: decide a recorded run again."""

from __future__ import annotations

import typer

from monitor.cli import options
from monitor.cli.output import Exit, emit, emit_json

__all__ = ["replay"]


def replay(
    run: options.RunFolder,
    monitor: options.OtherMonitor = None,
    calibration: options.CalibrationFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Decide a recorded run again.

    With the run's own configuration every metric, score and mode must be identical to the last bit
    (exit code 1 if one is not). With --monitor or --calibration the differences are the result.
    """
    from monitor.calibration import Calibration
    from monitor.config import load_config
    from monitor.study.replay import replay_run

    outcome = replay_run(
        run,
        config=None if monitor is None else load_config(monitor),
        calibration=None if calibration is None else Calibration.load(calibration),
    )
    if as_json:
        emit_json(outcome.to_json())
    else:
        emit(outcome.to_text())
    own = monitor is None and calibration is None
    if own and not outcome.identical:
        raise typer.Exit(Exit.EARLY)
