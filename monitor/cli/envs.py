"""``vlawatch envs``: which environments there are."""

from __future__ import annotations

from monitor.cli import options
from monitor.cli.output import emit_json, emit_table

__all__ = ["envs"]


def envs(as_json: options.AsJson = False) -> None:
    """List the environments."""
    from envs import list_envs

    known = list_envs()
    if as_json:
        emit_json({name: {"summary": e.summary, "extra": e.extra} for name, e in known.items()})
        return
    emit_table(
        ("name", "what it is", "needs"),
        [(name, spec.summary, f"vlawatch[{spec.extra}]") for name, spec in known.items()],
    )
