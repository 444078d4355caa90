"""``vlawatch policies``: the policies."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from monitor.cli import options
from monitor.cli.output import emit_json, emit_table

if TYPE_CHECKING:
    from policies import PolicySpec

__all__ = ["policies"]


def policies(as_json: options.AsJson = False) -> None:
    """List the policies: checkpoints, robots, signals, and what to install.

    The table has the usual checkpoint, `--json` every public one. The robots are values of
    `--policy-arg robot=NAME`.
    """
    from policies import list_policies

    known = list_policies()
    if as_json:
        emit_json({name: _entry(spec) for name, spec in known.items()})
        return
    emit_table(
        ("name", "what it is", "checkpoint", "robots", "signals", "needs"),
        [
            (
                name,
                spec.summary,
                spec.checkpoints[0] if spec.checkpoints else "",
                ", ".join(spec.robots),
                ", ".join(spec.signals),
                f"vlawatch[{spec.extra}]" if spec.extra else "",
            )
            for name, spec in known.items()
        ],
    )


def _entry(spec: PolicySpec) -> dict[str, Any]:
    shown = {field.name: getattr(spec, field.name) for field in fields(spec)}
    arguments = spec.arguments()
    shown["arguments"] = None if arguments is None else [asdict(one) for one in arguments]
    shown["defaults"] = {name: str(value) for name, value in spec.defaults.items()}
    return shown
