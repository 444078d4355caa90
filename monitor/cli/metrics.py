"""``vlawatch metrics``: the metrics."""

from __future__ import annotations

from dataclasses import asdict

from monitor.cli import options
from monitor.cli.output import emit_json, emit_table

__all__ = ["metrics"]


def metrics(as_json: options.AsJson = False) -> None:
    """List the metrics.

    Unit, range, warm-up, inputs, privileged or deployable, and source of each.
    """
    from monitor.catalogue import CATALOGUE

    if as_json:
        emit_json({name: asdict(info) for name, info in CATALOGUE.items()})
        return
    emit_table(
        ("id", "meaning", "unit", "range", "from step", "needs", "kind", "source"),
        [
            (
                name,
                info.meaning,
                info.unit,
                f"{_end(info.low)} to {_end(info.high)}",
                info.warmup,
                info.needs,
                "privileged" if info.privileged else "deployable",
                info.source,
            )
            for name, info in CATALOGUE.items()
        ],
    )


def _end(value: float | None) -> str:
    return "any" if value is None else f"{value:g}"
