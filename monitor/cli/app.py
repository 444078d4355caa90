"""The commands in one application; importing this imports nothing heavier than typer."""

from __future__ import annotations

from typing import Annotated

import typer

from monitor.cli import (
    bench,
    calibrate,
    config,
    doctor,
    envs,
    export,
    grade,
    merge,
    metrics,
    policies,
    probe,
    proxy,
    quality,
    replay,
    report,
    run,
    safe,
    serve,
    study,
    sweep,
)
from monitor.cli.output import emit, set_verbose

__all__ = ["app"]

app = typer.Typer(
    name="vlawatch",
    help="Monitor a vision-language-action policy: score, alert, recover, halt, record.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import version

    emit(f"vlawatch {version('vlawatch')}")
    raise typer.Exit


@app.callback()
def _main(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log debug lines and tracebacks to stderr.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    if verbose:
        set_verbose()


app.command(name="run")(run.run)
app.add_typer(study.app, name="study")
app.command(
    name="evaluate",
    hidden=True,
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(study.evaluate)
app.command(name="sweep")(sweep.sweep)
app.command(name="merge")(merge.merge)
app.command(name="replay")(replay.replay)
app.command(name="calibrate")(calibrate.calibrate)
app.command(name="safe")(safe.safe)
app.command(name="report")(report.report)
app.command(name="quality")(quality.quality)
app.command(name="grade")(grade.grade)
app.command(name="export")(export.export)
app.command(name="envs")(envs.envs)
app.command(name="policies")(policies.policies)
app.command(name="config")(config.config)
app.command(name="metrics")(metrics.metrics)
app.command(name="faults")(metrics.faults)
app.command(name="probe")(probe.probe)
app.command(name="serve-policy")(serve.serve_policy)
app.command(name="proxy")(proxy.proxy)
app.command(name="doctor")(doctor.doctor)
app.add_typer(bench.app, name="bench")
