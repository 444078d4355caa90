"""``vlawatch calibrate``: thresholds from successful rollouts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli import options
from monitor.cli.output import emit, emit_json

__all__ = ["calibrate"]


def calibrate(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs on clean scenes.")],
    out: Annotated[Path, typer.Option("--out", help="Calibration file to write.")],
    alpha: options.Alpha = 0.1,
    monitor: options.OtherMonitor = None,
    fit_noise: Annotated[
        bool,
        typer.Option(
            "--fit-noise", help="Fit the noise of the distance filter too (maximum likelihood)."
        ),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit thresholds on successful runs.

    Signal tables and split-conformal thresholds, from the successful episodes alone. Refuses if
    they are too few for alpha, and says how many are missing.
    """
    from monitor.config import load_config
    from monitor.study.calibration.calibrate import calibrate as fit
    from monitor.trace import check_writable

    check_writable(out.parent)
    fitted = fit(
        runs, alpha=alpha, config=None if monitor is None else load_config(monitor), noise=fit_noise
    )
    fitted.save(out)
    if as_json:
        emit_json(fitted)
        return
    emit(
        f"{out}: alpha {fitted.alpha:g} from {fitted.n_success} successful rollouts of "
        f"{fitted.policy} on {fitted.env}; tau_recover {fitted.tau_recover:.3f}, "
        f"tau_halt {fitted.tau_halt:.3f}; {len(fitted.signals)} signals"
    )
    if fitted.noise is not None:
        noise = fitted.noise
        emit(
            f"distance filter: measurement {noise.measurement_std_m:.2g} m, process "
            f"{noise.process_std_m:.2g} m and {noise.process_std_velocity:.2g} m/step per step"
        )
