"""``vlawatch safe``: a classifier on the policy's features that predicts failure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli import options
from monitor.cli.output import emit, emit_json

__all__ = ["safe"]


def safe(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs with --keep-hidden, with failures.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Probe file to write (.npz).")],
    alpha: Annotated[
        float,
        typer.Option(
            "--alpha",
            min=0.0,
            max=1.0,
            help="Share of successes allowed to leave the conformal band.",
        ),
    ] = 0.1,
    units: Annotated[int, typer.Option("--units", min=1, help="Hidden units.")] = 256,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Training epochs.")] = 300,
    penalty: Annotated[float, typer.Option("--penalty", min=0.0, help="L2 penalty.")] = 1e-2,
    unseen: Annotated[
        list[str] | None,
        typer.Option("--unseen", help="Disturbance kept for the test split only; repeatable."),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", help="Random seed of the data split and the initial weights.")
    ] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Train a SAFE probe (arXiv 2506.09937) and test it on held-out episodes.

    Half of the scenes trains, a quarter calibrates the conformal band, the rest tests.
    `metrics: {safe: FILE}` in a monitor configuration runs the probe.
    """
    from monitor.cli.session import one_thread
    from monitor.study.safe.fit import fit_safe_probe
    from monitor.study.safe.train import Training
    from monitor.trace import check_writable

    one_thread()
    check_writable(out.parent)
    fitted = fit_safe_probe(
        runs,
        alpha,
        Training(units=units, epochs=epochs, penalty=penalty, seed=seed),
        unseen=unseen or (),
    )
    fitted.probe.save(out)
    if as_json:
        emit_json({"file": out, **fitted.to_json()})
        return
    emit(fitted.to_text())
    emit(f"\n{out}: put `metrics: {{safe: {out.name}}}` into a monitor configuration next to it")
