"""``vlawatch metrics`` and ``vlawatch faults``: the tables of what is computed and detected."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from monitor.cli import options
from monitor.cli.output import emit_json, emit_table

__all__ = ["faults", "metrics"]

Plugins = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PLUGIN]...",
        help="Plugins to list too: names of entry points, or package.module:ATTRIBUTE. "
        "Installed ones are always listed.",
        show_default=False,
    ),
]


def metrics(plugins: Plugins = None, as_json: options.AsJson = False) -> None:
    """List the metrics.

    Unit, range, warm-up, inputs, privileged or deployable, and source of each.
    """
    from monitor.catalogue import CATALOGUE
    from monitor.metrics.plugins import GROUP, class_infos, named_plugins
    from monitor.plugins import known_targets

    names = dict.fromkeys([*known_targets(GROUP, {}), *(plugins or ())])
    found = [info for one in named_plugins(tuple(names)) for info in class_infos(one)]
    infos = {**CATALOGUE, **{info.id: info for info in found}}
    if as_json:
        emit_json({name: asdict(info) for name, info in infos.items()})
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
            for name, info in infos.items()
        ],
    )


def faults(plugins: Plugins = None, as_json: options.AsJson = False) -> None:
    """List the faults.

    Meaning, shipped response, field of the step that shows it, and the family by which
    ``faults.off`` leaves it out.
    """
    from monitor.faults import FAULTS
    from monitor.faults.plugins import GROUP, plugin_faults
    from monitor.plugins import known_targets

    names = dict.fromkeys([*known_targets(GROUP, {}), *(plugins or ())])
    infos = {**FAULTS, **{info.code: info for info in plugin_faults(tuple(names))}}
    if as_json:
        emit_json({code: asdict(info) for code, info in infos.items()})
        return
    emit_table(
        ("code", "meaning", "response", "field", "family", "source"),
        [
            (code, info.meaning, info.response, info.field, info.family, info.source)
            for code, info in infos.items()
        ],
    )


def _end(value: float | None) -> str:
    return "any" if value is None else f"{value:g}"
