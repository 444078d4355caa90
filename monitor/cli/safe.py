"""``vlawatch safe``: a probe on the policy's features, which says how likely a rollout fails."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli import options
from monitor.cli.output import emit, emit_json

__all__ = ["safe"]


def safe(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs with --keep-hidden, failures included.")
    ],
    out: Annotated[Path, typer.Option("--out", help="File of the probe to write (.npz).")],
    alpha: Annotated[
        float,
        typer.Option("--alpha", min=0.0, max=1.0, help="Successes allowed to leave the band."),
    ] = 0.1,
    units: Annotated[int, typer.Option("--units", min=1, help="Of the inner layer.")] = 256,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Passes over the data.")] = 300,
    penalty: Annotated[
        float, typer.Option("--penalty", min=0.0, help="On the squared weights.")
    ] = 1e-2,
    unseen: Annotated[
        list[str] | None,
        typer.Option("--unseen", help="Kind of disturbance that only judges; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of split and weights.")] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Train a SAFE probe (arXiv 2506.09937) and judge it on episodes held out.

    Half of the scenes trains, a quarter fits the conformal band, the rest judges. `metrics: {safe: FILE}` in a monitor configuration runs the probe.
    """
    from monitor.cli.session import one_thread
    from monitor.study.safe.fit import fit_probe
    from monitor.study.safe.train import Training
    from monitor.trace import check_writable

    one_thread()
    check_writable(out.parent)
    fitted = fit_probe(
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
    emit(f"\n{out}: put `metrics: {{safe: {out.name}}}` into a monitor configuration beside it")
